"""Health: whether everything works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NotRequired

from typing_extensions import TypedDict

from aaiclick.representations.fields import Form, Id, Time, facts_of

if TYPE_CHECKING:
    from aaiclick.orchestration.queries.health import Check, Health


class CheckAnswer(TypedDict):
    """One check and its outcome."""

    name: str
    ok: bool
    state: Annotated[str, Form(description="ok, fail or warn; warn means that something is missing, as the hint says.")]
    detail: str
    hint: str


class ReconcilerAnswer(TypedDict):
    """One of the leader's reconcilers: how often it ran, how much it did, and how long that took."""

    name: str
    runs: int
    done: int
    failures: int
    seconds: float
    ran_at: Time | None
    is_failing: bool
    trouble: str | None
    trouble_at: Time | None


class ReplicaAnswer(TypedDict):
    """A read-only copy of a coordinator: up to which event it is there, and how old it may be."""

    coordinator: str
    is_whole: Annotated[bool, Form(description="Whether the first copy is complete.")]
    as_of_seq: Annotated[Id, Form(description="All changes up to this event are here.")]
    lag_ms: Annotated[int | None, Form(description="How old what is here may be, in milliseconds.")]


class HealthAnswer(TypedDict):
    """All checks and their outcomes. `replica`: only of a server that is one."""

    ok: bool
    checks: list[CheckAnswer]
    reconcilers: list[ReconcilerAnswer]
    replica: NotRequired[ReplicaAnswer]


class Alive(TypedDict):
    """The process answers."""

    status: str


def health_answer(health: Health, replica: ReplicaAnswer | None = None) -> HealthAnswer:
    """Return what was found; `replica`: of a replica."""
    checks = [_check(check) for check in health.checks]
    reconcilers = [facts_of(ReconcilerAnswer, each) for each in health.reconcilers]
    found = HealthAnswer(ok=bool(health), checks=checks, reconcilers=reconcilers)
    if replica is not None:
        found["replica"] = replica
    return found


def _check(check: Check) -> CheckAnswer:
    return facts_of(CheckAnswer, check, state=("warn" if check.hint else "ok") if check.ok else "fail")
