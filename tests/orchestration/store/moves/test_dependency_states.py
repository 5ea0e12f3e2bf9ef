"""What stands before a node."""

from __future__ import annotations

from aaiclick.orchestration.models import Group
from aaiclick.orchestration.rules.triggers import Standing
from aaiclick.orchestration.store.moves.dependency_states import read_edges_into, read_standings
from tests.support.band import band, filled
from tests.support.orchestra import Orchestra, done, failure, make

__all__ = ["band"]


async def test_predecessors_with_whether_they_were_complete_when_the_edge_was_made(band: Orchestra) -> None:
    first, second, late = make("first"), make("second"), make("late")
    first >> second
    job = await band.submit(first, second, make("keeps open"))
    named = await band.claim_named()
    await band.complete(named["first"])
    first >> late
    await band.apply(job, late)
    ids = [second.id, late.id, first.id]
    into = await band.database.read(lambda session: read_edges_into(session, ids))
    assert into == {second.id: [(first.id, False)], late.id: [(first.id, True)]}


async def test_tasks_and_groups_are_complete_failed_or_neither(band: Orchestra) -> None:
    good, bad, open_, empty = filled("good"), filled("bad"), filled("open"), Group("empty")
    done_, failed, waits = make("done"), make("failed"), make("waits")
    failed >> waits
    await band.submit(good, bad, open_, empty, done_, failed, waits)
    named = await band.claim_named()
    await band.report(done(named["in good"]), failure(named["in bad"]), done(named["done"]), failure(named["failed"]))
    nodes = (good, bad, open_, empty, done_, failed, waits)
    found = await band.database.read(lambda session: read_standings(session, [node.id for node in nodes]))
    assert found == {
        **dict.fromkeys((good.id, empty.id, done_.id), Standing.MET),
        **dict.fromkeys((bad.id, failed.id, waits.id), Standing.FAILED),
    }
    assert await band.database.read(lambda session: read_standings(session, [])) == {}
