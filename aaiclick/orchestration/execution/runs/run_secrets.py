"""Replaces the Secrets among a run's arguments by their values, in the process that runs the body, just before it."""

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
"""The minimum length of a secret value. A shorter one would match ordinary text, and so cannot be masked."""


def mask_passwords() -> None:
    """Mask the passwords of aaiclick's own databases: bodies can read the URLs in their environment."""
    chosen = settings()
    masks.remember_passwords((chosen.sql_url, chosen.ch_url, chosen.node_ch_url))


def may_name_secrets(claim: Claim) -> bool:
    """Return whether the arguments, or the results they refer to, may contain Secrets."""
    if mentions_secrets(claim.kwargs_json):
        return True
    return any(map(mentions_secrets, claim.inputs.values())) if claim.inputs else False


def mask_values(kwargs: dict[str, object]) -> None:
    """Mask the values of the Secrets among the arguments.

    It is called before the body's module is imported, so that what the import prints is masked too.
    """
    values = (os.environ.get(secret.variable, "") for secret in secrets_in(kwargs))
    masks.remember(value for value in values if not _trouble_with(value))


def hands_on_secrets(found: object) -> bool:
    """Return whether a function gets Secrets unresolved, to pass them to tasks it makes: a workflow or an operator."""
    return kind_of(found) == "job" or keeps_secrets(unwrap(found))


def reveal(kwargs: dict[str, object]) -> dict[str, object]:
    """Return the arguments with Secrets replaced by their values.

    Raises VariableUnusable if a variable is missing, or its value cannot be masked.
    """
    return {name: revealed(value, _value_of) for name, value in kwargs.items()}


def _value_of(secret: Secret) -> str:
    value = os.environ.get(secret.variable)
    if value is None:
        hint = f"Set {secret.variable} in the environment of the worker, restart it, and retry the task."
        raise VariableUnusable(
            variable=secret.variable, cause="the worker's environment has no such variable", hint=hint
        )
    if trouble := _trouble_with(value):
        hint = "A value that short is not a secret: pass it as a plain argument." if len(value) < LENGTH_MIN else ""
        raise VariableUnusable(variable=secret.variable, cause=trouble, hint=hint)
    masks.remember([value])
    return value


def _trouble_with(value: str) -> str:
    """Return why a value cannot be masked in logs; an empty text if it can."""
    if len(value) < LENGTH_MIN:
        return f"its value has fewer than {LENGTH_MIN} characters, which cannot be masked in other text"
    return "" if is_storable(value) else "its value is not UTF-8"
