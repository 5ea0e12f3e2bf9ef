"""A job's result that names tasks which were there before."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from aaiclick.orchestration.models import Group, Task
from aaiclick.orchestration.store.graphs import expansions
from aaiclick.orchestration.store.graphs.kept_results import returned_stored
from aaiclick.orchestration.store.moves.early_endings import lock_graph
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import tasks
from tests.support.band import band, member
from tests.support.clearing import finish
from tests.support.growing import grown
from tests.support.orchestra import Orchestra, make
from tests.support.tables import drop, hold, pins, returned

__all__ = ["band"]


async def kept(band: Orchestra) -> set[str]:
    return {row.name for row in await band.rows(select(tasks.c.name).where(tasks.c.kept.is_(True)))}


async def test_the_table_of_a_task_that_was_there_before_is_kept_when_it_comes(band: Orchestra) -> None:
    entry, before, aside = make("entry"), make("before"), make("aside")
    job = await band.submit_returning(entry, entry, before, aside)
    claims = await band.claim_named()
    await band.report(grown(claims["entry"], returns=before))
    assert await kept(band) == {"entry", "before"}
    (table,) = await hold(band, claims["before"])
    await band.report(returned(claims["before"], table))
    assert await pins(band) == {(job.id, table)}
    assert await drop(band) == set()


async def test_the_table_of_a_task_that_was_complete_before_is_kept(band: Orchestra) -> None:
    entry, before = make("entry"), make("before")
    reader = make("reader", kwargs={"x": before})
    job = await band.submit_returning(entry, entry, before, reader)
    claims = await band.claim_named()
    (table,) = await hold(band, claims["before"])
    await band.report(returned(claims["before"], table))
    await band.report(grown(claims["entry"], returns=[before]))
    assert await pins(band) == {(job.id, table), (reader.id, table)}
    (claim,) = await band.claim()
    await band.report(returned(claim, made=()))
    assert await drop(band) == set()


async def test_what_a_group_and_a_task_that_returned_tasks_stand_for_is_kept(band: Orchestra) -> None:
    entry, parent, group = make("entry"), make("parent"), Group("group")
    inside = member(group, "inside")
    await band.submit_returning(entry, entry, parent, group, inside)
    claims = await band.claim_named()
    child, other = make("child"), make("other")
    await band.report(grown(claims["parent"], child, other, returns=child))
    await band.report(grown(claims["entry"], make("new"), returns=[parent, group]))
    assert await kept(band) == {"entry", "parent", "child", "inside"}


@pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)
async def test_a_task_that_comes_to_be_kept_while_it_waits_for_the_graph_keeps_what_it_returns(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read before the lock is old: the job's result names the parent by now, and so what it returns."""
    entry, parent = make("entry"), make("parent")
    await band.submit_returning(entry, entry, parent)
    claims = await band.claim_named()

    async def slowly(session: Session, job_id: int) -> bool:
        monkeypatch.setattr(expansions, "lock_graph", lock_graph)
        await band.report(grown(claims["entry"], returns=parent))
        return await lock_graph(session, job_id)

    monkeypatch.setattr(expansions, "lock_graph", slowly)
    child = make("child")
    await band.report(grown(claims["parent"], child, make("other"), returns=child))
    assert await kept(band) == {"entry", "parent", "child"}


async def test_a_result_whose_tables_are_gone_is_refused(band: Orchestra) -> None:
    """Else the job would complete with a result that nobody can read."""
    entry, before = make("entry"), make("before")
    job = await band.submit_returning(entry, entry, before)
    claims = await band.claim_named()
    (table,) = await hold(band, claims["before"])
    await band.report(returned(claims["before"], table))
    assert await drop(band) == {table}
    await band.report(grown(claims["entry"], returns=before))
    found = await band.task(entry)
    assert found.status == "failed"
    assert f"cannot be returned: tables that it needs are gone (task 'entry' ({entry.id}) needs {table})" in (
        found.error or ""
    )
    assert (await band.job(job)).status == "failed"


async def test_others_who_return_what_was_there_keep_nothing(band: Orchestra) -> None:
    parent, before = make("parent"), make("before")
    job = await band.submit(parent, before)
    claims = await band.claim_named()
    report = grown(claims["parent"], returns=before)
    assert returned_stored(report)
    assert not returned_stored(grown(claims["before"], child := make("child"), returns=child))
    await band.report(report)
    assert await kept(band) == set()
    (table,) = await hold(band, claims["before"])
    await band.report(returned(claims["before"], table))
    assert await drop(band) == {table}
    await finish(band, job)


async def test_of_many_that_are_returned_an_operators_parts_are_not_kept(band: Orchestra) -> None:
    """More edges than a few are led through a group; what is kept is the same."""
    entry = make("entry")
    waiting = Task("some.module.after", {"x": entry}, name="waiting")
    await band.submit_returning(entry, entry, waiting)
    claims = await band.claim_named()
    group = Group("operator")
    part, collect = member(group, "part"), member(group, "collect")
    group.output = collect
    many = [make("many") for _ in range(200)]
    await band.report(grown(claims["entry"], part, collect, group, *many, returns=[*many, group]))
    assert await kept(band) == {"entry", "many", "collect"}
