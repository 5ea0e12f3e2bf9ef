"""Mistakes about tables, to plant into the real code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy import and_, exists, or_, update

from aaiclick.orchestration.control import sweeper
from aaiclick.orchestration.coordinator import direct
from aaiclick.orchestration.models import Report
from aaiclick.orchestration.store import (
    batches,
    clears,
    expansions,
    reports,
    table_drops,
    table_holds,
    table_refs,
    transitions,
)
from aaiclick.orchestration.store.downstream import Downstream, find_downstream
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, table_run_refs

Replacements = Sequence[tuple[Any, str, Any]]
Plant = Callable[[], Replacements]


def unpin_at_start() -> Replacements:
    """A consumer needs its inputs no more once it has begun (pitfall T12)."""

    async def hold_tables(session: Session, worker_id: int, holds: Sequence[table_holds.Hold]) -> set[tuple[int, int]]:
        held = await real(session, worker_id, holds)
        await table_refs.free_pins(session, [hold.task_id for hold in holds])
        return held

    real = table_holds.hold_tables
    return [(direct, "hold_tables", hold_tables)]


def references_by_task() -> Replacements:
    """Whoever ends his references ends those of all runs of the task (pitfall T13)."""

    async def free_runs(session: Session, runs: Sequence[tuple[int, int]]) -> None:
        which = session.any_of(table_run_refs.c.task_id, sorted({task for task, _ in runs}))
        await session.run(update(table_run_refs).where(which).values(freed=True))

    async def settle_tables(session: Session, said: Sequence[Report], accepted: Iterable[tuple[int, int]]) -> None:
        await real(session, said, accepted)
        await free_runs(session, [(report.task_id, report.epoch) for report in said])

    real = table_refs.settle_tables
    frees = [(module, "free_runs", free_runs) for module in (direct, table_drops)]
    return [*frees, *((module, "settle_tables", settle_tables) for module in (reports, batches, expansions))]


def references_that_end_with_the_claim() -> Replacements:
    """What a run holds is free as soon as it has lost its claim, although its body goes on (RULINGS 10)."""
    stray = table_drops._stray

    def without_claim() -> Any:
        claimed = exists().where(claims.c.task_id == table_run_refs.c.task_id, claims.c.epoch == table_run_refs.c.epoch)
        return or_(stray(), and_(~table_run_refs.c.freed, ~claimed))

    return [(table_drops, "_stray", without_claim)]


def claims_that_end_without_a_word() -> Replacements:
    """Nobody writes down what a body held whose claim is taken away."""

    async def nothing(*_: Any) -> None:
        """It was held by the claim, and that is gone."""

    return [(transitions, "keep_held", nothing)]


def dropper_that_does_not_look() -> Replacements:
    """Whatever a reference has ended to is dropped."""

    async def nobody(session: Session, names: Any) -> set[str]:
        return set()

    return [(table_drops, "_needed", nobody)]


def publication_without_pins() -> Replacements:
    def nothing(mine: Any, named: Any) -> set[Any]:
        return set()

    return [(table_refs, "_wanted", nothing)]


def clear_that_pins_nothing() -> Replacements:
    async def nothing(*_: Any) -> None:
        """The inputs of what runs again are left to chance."""

    return [(clears, "pin_again", nothing)]


def clear_that_does_not_ask() -> Replacements:
    """Whether the inputs are still there."""

    async def find(session: Session, job_id: int, roots: Sequence[int], **_: Any) -> Downstream:
        return await find_downstream(session, job_id, roots)

    return [(clears, "find_to_clear", find)]


def sweeper_that_never_comes() -> Replacements:
    """What a body made that outlived its run is found by nobody."""

    async def sweep(self: sweeper.TableSweeper) -> int:
        return 0

    return [(sweeper.TableSweeper, "sweep", sweep)]


TABLE_MISTAKES: tuple[Plant, ...] = (
    unpin_at_start,
    references_by_task,
    references_that_end_with_the_claim,
    claims_that_end_without_a_word,
    dropper_that_does_not_look,
    publication_without_pins,
    clear_that_pins_nothing,
    clear_that_does_not_ask,
    sweeper_that_never_comes,
)
