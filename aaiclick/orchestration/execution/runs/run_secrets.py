"""From the Secrets among a run's arguments to their values, in the process that runs the body, just before it does."""

from __future__ import annotations

import os

from aaiclick.config import settings
from aaiclick.errors import VariableUnusable
from aaiclick.orchestration.models import Claim
from aaiclick.orchestration.rules.secrets import Secret, keeps_secrets, mentions_secrets, revealed, secrets_in
from aaiclick.orchestration.rules.validation import is_storable
from aaiclick.orchestration.submitting.entrypoints import kind_of, unwrap
from aaiclick.telemetry import masks

LENGTH_MIN = 8
"""A shorter value cannot be told from other text, and so cannot be masked."""


def mask_passwords() -> None:
    """Mask the passwords of our own databases in all that comes from bodies: they find the addresses around them."""
    chosen = settings()
    masks.remember_passwords((chosen.sql_url, chosen.ch_url))


def may_name_secrets(claim: Claim) -> bool:
    """Whether the arguments, or the results among them, may name Secrets."""
    return mentions_secrets(claim.kwargs_json) or any(map(mentions_secrets, claim.inputs.values()))


def mask_values(kwargs: dict[str, object]) -> None:
    """Mask what the arguments name from now on, also in what the import of the body's module prints."""
    values = (os.environ.get(secret.variable, "") for secret in secrets_in(kwargs))
    masks.remember(value for value in values if not _trouble_with(value))


def hands_on_secrets(found: object) -> bool:
    """Whether a function gets Secrets as they are, for the tasks that it makes: a workflow, an operator."""
    return kind_of(found) == "job" or keeps_secrets(unwrap(found))


def reveal(kwargs: dict[str, object]) -> dict[str, object]:
    """The arguments with the values of their Secrets; refused if one has none."""
    return {name: revealed(value, _value_of) for name, value in kwargs.items()}


def _value_of(secret: Secret) -> str:
    value = os.environ.get(secret.variable)
    if value is None:
        hint = f"Set {secret.variable} where the worker is started, start it again, and retry the task."
        raise VariableUnusable(variable=secret.variable, cause="the worker has no such variable", hint=hint)
    if trouble := _trouble_with(value):
        hint = "What is that short is no secret: pass it as it is." if len(value) < LENGTH_MIN else ""
        raise VariableUnusable(variable=secret.variable, cause=trouble, hint=hint)
    masks.remember([value])
    return value


def _trouble_with(value: str) -> str:
    """Why a value cannot be kept out of logs; empty if it can."""
    if len(value) < LENGTH_MIN:
        return f"its value has fewer than {LENGTH_MIN} characters, which cannot be told from other text"
    return "" if is_storable(value) else "its value is not UTF-8"
