"""Mistakes about tables, to plant into the real code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import and_, exists, or_

from aaiclick.orchestration.coordinator import direct
from aaiclick.orchestration.store import claim_ends
from aaiclick.orchestration.store.moves import clears
from aaiclick.orchestration.store.moves.downstream import Downstream, find_downstream
from aaiclick.orchestration.store.object_tables import holds as table_holds
from aaiclick.orchestration.store.object_tables import references
from aaiclick.orchestration.store.retention import table_drops
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, table_run_refs

Replacements = Sequence[tuple[Any, str, Any]]
Plant = Callable[[], Replacements]


def unpin_at_start() -> Replacements:
    """A consumer needs its inputs no more once it has begun (pitfall T12)."""

    async def hold_tables(session: Session, worker_id: int, holds: Sequence[table_holds.Hold]) -> set[tuple[int, int]]:
        held = await real(session, worker_id, holds)
        await references.free_pins(session, [hold.task_id for hold in holds])
        return held

    real = table_holds.hold_tables
    return [(direct, "hold_tables", hold_tables)]


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

    return [(claim_ends, "keep_held", nothing)]


def dropper_that_does_not_look() -> Replacements:
    """Whatever a reference has ended to is dropped."""

    async def nobody(session: Session, names: Any) -> set[str]:
        return set()

    return [(table_drops, "_needed", nobody)]


def publication_without_pins() -> Replacements:
    def nothing(mine: Any, named: Any) -> set[Any]:
        return set()

    return [(references, "_wanted", nothing)]


def clear_that_pins_nothing() -> Replacements:
    async def nothing(*_: Any) -> None:
        """The inputs of what runs again are left to chance."""

    return [(clears, "pin_again", nothing)]


def clear_that_does_not_ask() -> Replacements:
    """Whether the inputs are still there."""

    async def find(session: Session, job_id: int, roots: Sequence[int], **_: Any) -> Downstream:
        return await find_downstream(session, job_id, roots)

    return [(clears, "find_to_clear", find)]


TABLE_MISTAKES: tuple[Plant, ...] = (
    unpin_at_start,
    references_that_end_with_the_claim,
    claims_that_end_without_a_word,
    dropper_that_does_not_look,
    publication_without_pins,
    clear_that_pins_nothing,
    clear_that_does_not_ask,
)
"""Two more have shown in none of forty-eight worlds since bodies are stopped before their sessions end. Tests of their
own hold them: references that are freed by task (store/object_tables/test_references.py), and a sweeper that never
comes (control/test_table_sweeper.py)."""
