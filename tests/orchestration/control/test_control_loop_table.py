"""The control loop over a table of reconcilers: who comes when, and what the others hear of one that fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import literal, select, update

from aaiclick.errors import BackendUnreachable, DataUnreachable
from aaiclick.orchestration.control.control_loop import Control
from aaiclick.orchestration.control.reconcilers import Outcome, Reconciler, Tools
from aaiclick.orchestration.store import pending_work
from aaiclick.orchestration.store.definitions.column_types import UtcTime
from aaiclick.orchestration.store.tables import terms
from tests.orchestration.control.test_control_loop import SESSION_S, control, rounds
from tests.support.band import band
from tests.support.clocks import HandClock
from tests.support.orchestra import LONG_AGO, Orchestra

__all__ = ["band"]


def row(name: str, work: Callable[[], int | Outcome], **options: Any) -> Reconciler:
    """A reconciler of this test."""

    async def act(_: Tools) -> int | Outcome:
        return work()

    return Reconciler(name, act, "is tried here", **options)


@dataclass
class Stage:
    """A loop with a few reconcilers, each of which notes when it ran."""

    clock: HandClock = field(default_factory=HandClock)
    seen: list[tuple[str, float]] = field(default_factory=list)
    began: float = 0.0

    def note(self, name: str, outcome: int | Outcome = 0) -> Callable[[], int | Outcome]:
        self.began = self.clock.now

        def work() -> int | Outcome:
            self.seen.append((name, self.clock.now - self.began))
            return outcome

        return work

    def loop(self, band: Orchestra, *rows: Reconciler) -> Control:
        return Control(band.database, 1, session_s=SESSION_S, clock=self.clock, reconcilers=rows)


async def test_a_row_comes_when_its_question_is_answered_or_its_time_has_come(band: Orchestra) -> None:
    stage = Stage()
    there, due = True, None
    asked = pending_work.Question(lambda _: literal(there), lambda: select(literal(due, UtcTime)).scalar_subquery())
    loop = stage.loop(
        band,
        row("asked", stage.note("asked"), question=asked),
        row("seldom", stage.note("seldom"), question=asked, every_s=5.0),
        row("timed", stage.note("timed"), every_s=3.0),
        row("each round", stage.note("each round")),
    )
    await rounds(loop, stage.clock, 7)
    assert stage.seen == [
        ("asked", 0), ("each round", 0),
        ("asked", 2), ("each round", 2),
        ("asked", 4), ("timed", 4), ("each round", 4),
        ("asked", 6), ("seldom", 6), ("each round", 6),
    ]  # fmt: skip
    stage.seen.clear()
    there = False
    await rounds(loop, stage.clock, 2)
    assert [name for name, _ in stage.seen] == ["timed", "each round"]


async def test_a_row_that_follows_others_comes_when_they_did_something(band: Orchestra) -> None:
    stage = Stage()
    never = pending_work.Question(lambda _: literal(False))
    loop = stage.loop(
        band,
        row("first", stage.note("first", 1), every_s=4.0),
        row("idle", stage.note("idle")),
        row("second", stage.note("second"), question=never, follows=("first",)),
        row("third", stage.note("third"), question=never, follows=("idle", "second")),
    )
    await rounds(loop, stage.clock, 5)
    assert [name for name, _ in stage.seen] == ["idle", "idle", "first", "idle", "second"]


async def test_a_row_may_ask_for_its_next_turn(band: Orchestra) -> None:
    stage = Stage()
    left = [Outcome(1, 0.0), Outcome(1, 0.5), Outcome(1, 0.5), Outcome(0)]
    note = stage.note("more")

    def work() -> Outcome:
        note()
        return left.pop(0)

    loop = stage.loop(band, row("more", work, every_s=4.0))
    await rounds(loop, stage.clock, 7)
    assert [at for _, at in stage.seen] == [4.0, 4.0, 4.5, 5.0]


async def test_what_is_for_each_machine_comes_whether_it_leads_or_not(band: Orchestra) -> None:
    stage, other = Stage(), control(band, HandClock(), 2)
    await other.round()
    here, there = row("here", stage.note("here"), leads=False), row("led", stage.note("led"))
    loop = stage.loop(band, here, there)
    await loop.round()
    assert not loop.leader.leads
    assert [name for name, _ in stage.seen] == ["here"]


async def test_whoever_begins_to_lead_lets_what_is_not_asked_for_wait(band: Orchestra) -> None:
    stage, other = Stage(), control(band, HandClock(), 2)
    await other.round()
    rows = (row("soon", stage.note("soon"), every_s=4.0), row("seldom", stage.note("seldom"), every_s=50.0))
    loop = stage.loop(band, *rows)
    await rounds(loop, stage.clock, 60)
    await band.database.transact(lambda session: session.run(update(terms).values(expires_at=LONG_AGO)))
    began = stage.clock.now - stage.began
    await rounds(loop, stage.clock, 40)
    first = {name: at - began for name, at in reversed(stage.seen)}
    assert 2 <= first["soon"] <= 20  # it looks when the other's term should be over
    assert 28 <= first["seldom"] <= 40
    assert first["seldom"] - first["soon"] >= 20


@pytest.mark.parametrize(
    ("error", "outage"),
    [
        (BackendUnreachable(url="here", cause="no"), True),
        (ConnectionResetError("no"), True),
        (TimeoutError(), True),
        (DataUnreachable(cause="no"), False),
        (PermissionError("the log"), False),
        (ValueError("a row"), False),
    ],
)
async def test_the_first_who_meets_an_outage_ends_the_round(band: Orchestra, error: Exception, outage: bool) -> None:
    stage = Stage()

    def fail() -> int:
        raise error

    loop = stage.loop(band, row("first", fail), row("second", stage.note("second")))
    await loop.round()
    assert (stage.seen == []) is outage
    assert (loop._since is None) is outage
    stage.clock.now += 2
    await loop.round()
    assert [name for name, _ in stage.seen][-1:] == ["second"]
