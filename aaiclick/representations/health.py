"""Health: whether everything works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typing_extensions import TypedDict

from aaiclick.representations.fields import Form, facts_of

if TYPE_CHECKING:
    from aaiclick.orchestration.health import Check, Health


class CheckAnswer(TypedDict):
    """One thing that was looked at."""

    name: str
    ok: bool
    state: Annotated[str, Form(description="ok, fail, or warn: ok, but something is missing, as the hint says.")]
    detail: str
    hint: str


class HealthAnswer(TypedDict):
    """Everything that was looked at."""

    ok: bool
    checks: list[CheckAnswer]


class Alive(TypedDict):
    """Yes."""

    status: str


def health_answer(health: Health) -> HealthAnswer:
    """Return what was found."""
    return HealthAnswer(ok=bool(health), checks=[_check(check) for check in health.checks])


def _check(check: Check) -> CheckAnswer:
    return facts_of(CheckAnswer, check, state=("warn" if check.hint else "ok") if check.ok else "fail")
