"""Retry policies, and the decision whether a failed or crashed task is tried again and after what delay."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, NoReturn

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.validation import shorten

RETRIES_MAX = 1_000_000
DELAY_S_MAX = 30 * 24 * 3600.0
FACTOR_MAX = 1000.0

# Errors that no further attempt can mend: code that cannot be imported, a key that belongs to another call, results
# that cannot be stored, final answers.
NEVER_RETRIED = (
    "aaiclick.errors.CommandFailedForGood",
    "aaiclick.errors.EntrypointError",
    "aaiclick.errors.IdempotencyConflict",
    "aaiclick.errors.RequestFailedForGood",
    "aaiclick.errors.ValueNotPortable",
    "aaiclick.errors.ValueTooLarge",
)


class Retry(NamedTuple):
    """Try again after the delay."""

    delay_s: float


class GiveUp(NamedTuple):
    """Do not try again."""

    reason: str


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, after what delay and for which errors a task is tried again.

    Errors are named as text, `"httpx.ConnectError"`; a name without a dot fits every class of that name. An empty
    `retry_on` means all errors, and `no_retry_on` wins over it.
    """

    max_retries: int = 0
    delay_s: float = 1.0
    factor: float = 2.0
    delay_s_max: float = 300.0
    jitter: bool = True
    retry_on: tuple[str, ...] = ()
    no_retry_on: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if type(self.max_retries) is not int or not 0 <= self.max_retries <= RETRIES_MAX:
            _refuse("max_retries", self.max_retries, f"it must be a whole number from 0 to {RETRIES_MAX}")
        _check_number("delay_s", self.delay_s, 0, DELAY_S_MAX)
        _check_number("delay_s_max", self.delay_s_max, 0, DELAY_S_MAX)
        _check_number("factor", self.factor, 1, FACTOR_MAX)
        if self.delay_s > self.delay_s_max:
            _refuse("delay_s", self.delay_s, f"it is longer than delay_s_max, {self.delay_s_max}")
        if type(self.jitter) is not bool:
            _refuse("jitter", self.jitter, "it must be True or False")
        object.__setattr__(self, "retry_on", _checked_names("retry_on", self.retry_on))
        object.__setattr__(self, "no_retry_on", _checked_names("no_retry_on", self.no_retry_on))

    def to_json(self) -> str | None:
        """Return the fields that differ from the default policy as JSON, or None if none does."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        differing = {name: value for name, value in own.items() if value != getattr(_DEFAULT, name)}
        return json.dumps(differing, separators=(",", ":")) if differing else None

    @classmethod
    def from_json(cls, text: str | None) -> RetryPolicy:
        """Return the policy of a text that `to_json` returned; raise InputError if it has unknown fields."""
        if text is None:
            return _DEFAULT
        given = json.loads(text)
        known = {field.name for field in fields(cls)}
        if type(given) is not dict or given.keys() - known:
            _refuse("retry policy", text, f"its fields must be among {', '.join(sorted(known))}")
        return cls(**given)


def after_failure(policy: RetryPolicy, attempt: int, error_types: Sequence[str], draw: float) -> Retry | GiveUp:
    """Decide what follows a failure after `attempt` earlier ones; `draw` is a random number from 0 to 1 for the jitter.

    `error_types` are the dotted names of the error's class and of its bases, nearest first.
    """
    name = error_types[0] if error_types else "the error"
    if _fits(NEVER_RETRIED, error_types):
        return GiveUp(f"{name} would happen again")
    if _fits(policy.no_retry_on, error_types):
        return GiveUp(f"{name} is in no_retry_on")
    if policy.retry_on and not _fits(policy.retry_on, error_types):
        return GiveUp(f"{name} is not in retry_on")
    if attempt >= policy.max_retries:
        return GiveUp(f"failed {attempt + 1} times, max_retries is {policy.max_retries}")
    delay_s = backoff_s(policy, attempt)
    return Retry(draw * delay_s if policy.jitter else delay_s)


def after_crash(policy: RetryPolicy, crashes: int, crashes_max: int, draw: float) -> Retry | GiveUp:
    """Decide what follows the death of the process that ran the task, after `crashes` earlier ones.

    A crash does not count as an attempt: `max_retries` limits errors of the task, and it may not have caused this one.
    """
    if crashes + 1 >= crashes_max:
        return GiveUp(f"its process died {crashes + 1} times")
    delay_s = backoff_s(policy, crashes)
    return Retry(draw * delay_s if policy.jitter else delay_s)


def backoff_s(policy: RetryPolicy, attempt: int) -> float:
    """Return the delay in seconds after so many earlier failures, before jitter shortens it."""
    try:
        return min(policy.delay_s * float(policy.factor) ** attempt, policy.delay_s_max)
    except OverflowError:
        return policy.delay_s_max if policy.delay_s else 0.0


def _fits(names: Sequence[str], error_types: Sequence[str]) -> bool:
    for error in error_types:
        full = error if "." in error else f"builtins.{error}"
        if full in names or full.rpartition(".")[2] in names:
            return True
    return False


def _check_number(field: str, value: object, least: float, most: float) -> None:
    if type(value) not in (int, float) or not least <= value <= most:  # type: ignore[operator]
        _refuse(field, value, f"it must be a number from {least:g} to {most:g}")


def _checked_names(field: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, tuple | list):
        _refuse(field, value, "it must be a tuple of names")
    for name in value:
        if isinstance(name, type):
            _refuse(field, name, f'errors must be named by text: "{name.__module__}.{name.__qualname__}"')
        if type(name) is not str or not all(part.isidentifier() for part in name.split(".")):
            _refuse(field, name, 'it must be the dotted name of an error, such as "builtins.TimeoutError"')
    return tuple(value)


def _refuse(field: str, value: object, rule: str) -> NoReturn:
    raise InputError(field=field, value=shorten(value), rule=rule, hint="See RetryPolicy.")


_DEFAULT = RetryPolicy()
