"""The table: each row is whole, what it asks is in the one question, and the page tells of it."""

from __future__ import annotations

import re
from pathlib import Path

from aaiclick.orchestration.control.control_loop import Control
from aaiclick.orchestration.control.reconcilers import RECONCILERS, RECORD_EVERY_S, questions_of
from aaiclick.orchestration.store.leases.reconcilers import read_reconcilers
from tests.support.band import band
from tests.support.clocks import HandClock
from tests.support.orchestra import Orchestra, make

__all__ = ["band"]

PAGE = Path(__file__).parents[3] / "docs/concepts/sessions-and-recovery.md"


def test_names_are_unique_and_whoever_follows_comes_later() -> None:
    names = [each.name for each in RECONCILERS]
    assert len(set(names)) == len(names)
    for place, each in enumerate(RECONCILERS):
        assert set(each.follows) <= set(names[:place])


def test_each_comes_by_a_question_or_by_the_time() -> None:
    assert all(each.question is not None or each.every_s > 0 for each in RECONCILERS)
    assert set(questions_of(RECONCILERS)) == {each.name for each in RECONCILERS if each.question is not None}
    assert not [each.name for each in RECONCILERS if not each.leads and each.question is not None]


def test_the_page_tells_of_each_what_it_does_and_how_often() -> None:
    """Read off the table, in its order."""
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", PAGE.read_text(), re.MULTILINE)
    assert [(name, often, meaning) for name, often, meaning in rows] == [
        (each.name, "when needed" if each.question is not None else f"{each.every_s:g} s", each.meaning)
        for each in RECONCILERS
    ]


async def test_whoever_leads_writes_down_what_became_of_them(band: Orchestra) -> None:
    clock = HandClock()
    loop = Control(band.database, 1, session_s=30, clock=clock)
    await band.submit(make("a"))
    await band.claim()
    await band.coordinator.deregister(band.worker)
    until = clock.now + RECORD_EVERY_S + 2
    while clock.now < until:
        clock.now += await loop.round()
    found = {each.name: each for each in await band.database.read(read_reconcilers)}
    assert set(found) == {each.name for each in RECONCILERS}
    lost = found["recover_lost_runs"]
    assert (lost.runs, lost.done, lost.failures) == (1, 1, 0)
    assert found["count_events"].runs == 3
    assert found["mend_stuck_jobs"].runs == 1
    assert found["sweep_tables"].ran_at is None


async def test_a_leader_that_leaves_writes_down_the_rest_and_the_next_goes_on(band: Orchestra) -> None:
    first = Control(band.database, 1, session_s=30, clock=HandClock())
    await band.submit(make("a"))
    await band.claim()
    await band.coordinator.deregister(band.worker)
    await first.round()
    await first._leave()
    (lost,) = [each for each in await band.database.read(read_reconcilers) if each.name == "recover_lost_runs"]
    assert lost.runs == 1
    second = Control(band.database, 2, session_s=30, clock=HandClock())
    await second.round()
    second.accounts.note("recover_lost_runs", 0, 0.0)
    await second._leave()
    (lost,) = [each for each in await band.database.read(read_reconcilers) if each.name == "recover_lost_runs"]
    assert (lost.runs, lost.done) == (2, 1)
