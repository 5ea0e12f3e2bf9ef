"""Running again what needs tables that others made."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from aaiclick.errors import InputsGone
from aaiclick.orchestration.models import Claim, Group, Job, Task
from aaiclick.orchestration.rules.states import PreservationMode
from aaiclick.orchestration.store.moves.clears import clear_tasks
from aaiclick.orchestration.store.object_tables.holds import register_given
from aaiclick.orchestration.store.retention import table_drops
from tests.support.band import SERVERS, band, member
from tests.support.growing import grown
from tests.support.orchestra import Orchestra, make
from tests.support.tables import drop, failed, hold, look, pins, references_left, registered, returned

__all__ = ["band"]


async def the_next(band: Orchestra) -> Claim:
    (claim,) = await band.claim()
    return claim


async def run(band: Orchestra, claim: Claim, *inputs: str, fails: bool = False, keeps: bool = True) -> str:
    """Run one that uses these and returns a table of its own."""
    (table,) = await hold(band, claim)
    report = failed(claim, made=()) if fails else returned(claim, *([table] if keeps else []), made=(table,))
    await band.report(report)
    return table


async def chain(band: Orchestra, *, last_fails: bool = False) -> tuple[Job, list[Task], list[str]]:
    """a → b → c, each with a table for the next; c has none."""
    a = make("a")
    b = make("b", kwargs={"x": a})
    c = make("c", kwargs={"x": b})
    job = await band.submit(a, b, c)
    first = await run(band, await the_next(band))
    second = await run(band, await the_next(band), first)
    await run(band, await the_next(band), second, fails=last_fails, keeps=False)
    return job, [a, b, c], [first, second]


async def test_what_failed_finds_its_inputs_again(band: Orchestra) -> None:
    job, (_, _, c), (first, second) = await chain(band, last_fails=True)
    assert await drop(band) == {first}
    assert await band.coordinator.retry_failed(job.id) == [c.id]
    assert await pins(band) == {(c.id, second)}
    assert await drop(band) == set()
    await run(band, await the_next(band), second, keeps=False)
    assert (await drop(band)) >= {second}
    assert await references_left(band) == 0


async def test_what_needs_a_table_that_is_gone_is_not_cleared(band: Orchestra) -> None:
    """Pitfall T14."""
    job, (_, b, c), (first, second) = await chain(band)
    assert await drop(band) >= {first, second}
    with pytest.raises(InputsGone, match=f"task 'c' \\({c.id}\\) needs {second}") as told:
        await band.coordinator.clear(c.id)
    assert told.value.facts["lacking"] == [(c.id, second)]
    with pytest.raises(InputsGone, match=first):
        await band.coordinator.clear(b.id)
    with pytest.raises(InputsGone, match="upstream=True"):
        await band.coordinator.clear(c.id, dry_run=True)
    assert (await band.job(job)).status == "completed"
    assert set((await band.statuses(job)).values()) == {"completed"}
    assert await band.violations() == []


async def test_upstream_runs_again_what_made_the_tables_as_far_up_as_it_takes(band: Orchestra) -> None:
    _, (a, b, c), (first, second) = await chain(band)
    assert await drop(band) >= {first, second}
    assert sorted(await band.coordinator.clear(c.id, upstream=True, dry_run=True)) == [a.id, b.id, c.id]
    assert sorted(await band.coordinator.clear(c.id, upstream=True)) == [a.id, b.id, c.id]
    assert await pins(band) == set()
    again = await run(band, await the_next(band))
    assert again != first
    assert await pins(band) == {(b.id, again)}


async def test_upstream_stops_where_tables_are_still_there(band: Orchestra) -> None:
    a = make("a")
    b, failing = make("b", kwargs={"x": a}), make("failing", kwargs={"x": a})
    c = make("c", kwargs={"x": b})
    await band.submit(a, b, failing, c)
    first = await run(band, await the_next(band))
    claims = await band.claim_named()
    await run(band, claims["failing"], first, fails=True)
    second = await run(band, claims["b"], first)
    await run(band, await the_next(band), second, keeps=False)
    assert second in await drop(band)
    assert sorted(await band.coordinator.clear(c.id, upstream=True)) == [b.id, c.id]
    assert await pins(band) == {(b.id, first), (failing.id, first)}


async def test_what_no_task_made_cannot_be_made_again(band: Orchestra) -> None:
    given = "t123_0_1"
    await band.database.transact(lambda session: register_given(session, 1, [given], PreservationMode.NONE))
    a = make("a", kwargs={"x": {"object_type": "object", "table": given}})
    await band.submit(a)
    (claim,) = await band.claim()
    await band.report(returned(claim, made=()))
    assert await drop(band) == {given}
    with pytest.raises(InputsGone, match="cannot be made again"):
        await band.coordinator.clear(a.id, upstream=True)


async def test_a_cleared_task_leaves_what_its_run_made(band: Orchestra) -> None:
    """Nobody needs the old tables any more: they go, and new ones take their place."""
    a = make("a")
    b = make("b", kwargs={"x": a})
    await band.submit(a, b)
    old = await run(band, await the_next(band))
    (running,) = await band.claim()
    await hold(band, running)
    await band.coordinator.clear(a.id)
    assert await pins(band) == set()
    assert await drop(band) == set()  # the body of b is not dead yet
    await band.coordinator.let_go(band.worker, [(running.task_id, running.epoch)])
    assert old in await drop(band)
    new = await run(band, await the_next(band))
    assert await registered(band) == {new}
    assert await pins(band) == {(b.id, new)}


async def test_the_jobs_result_lets_go_of_what_is_made_anew(band: Orchestra) -> None:
    a = make("a")
    beside = make("beside")
    job = await band.submit_returning([a, beside], a, beside)
    claims = await band.claim_named()
    old, kept = await run(band, claims["a"]), await run(band, claims["beside"])
    assert await pins(band) == {(job.id, old), (job.id, kept)}
    await band.coordinator.clear(a.id)
    assert await pins(band) == {(job.id, kept)}
    assert await drop(band) == {old}


async def test_inputs_by_way_of_a_group_and_of_returned_tasks_count(band: Orchestra) -> None:
    with Group("parts") as parts:
        for name in ("p1", "p2"):
            member(parts, name)
    reader = make("reader", kwargs={"x": parts})
    await band.submit(parts, reader)
    made = {name: await run(band, claim) for name, claim in (await band.claim_named()).items()}
    (claim,) = await band.claim()
    await band.report(failed(claim, made=()))
    assert await drop(band) == set()
    await band.coordinator.clear(reader.id)
    assert await pins(band) == {(reader.id, table) for table in made.values()}
    assert await drop(band) == set()


async def test_children_that_are_removed_need_nothing_any_more(band: Orchestra) -> None:
    parent = make("parent")
    await band.submit(parent)
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    child = make("child", kwargs={"x": {"object_type": "object", "table": table}})
    await band.report(replace(grown(claim, child), holds=True, made=(table,)))
    assert await pins(band) == {(child.id, table)}
    await band.coordinator.clear(parent.id)
    assert await pins(band) == set()
    assert await drop(band) == {table}


async def test_a_child_is_cleared_with_its_parent_where_the_parents_table_is_gone(band: Orchestra) -> None:
    parent = make("parent")
    await band.submit(parent)
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    child = make("child", kwargs={"x": {"object_type": "object", "table": table}})
    await band.report(replace(grown(claim, child), holds=True, made=(table,)))
    (claim,) = await band.claim()
    await band.report(returned(claim, made=()))
    assert await drop(band) == {table}
    with pytest.raises(InputsGone):
        await band.coordinator.clear(child.id)
    assert await band.coordinator.clear(child.id, upstream=True) == [parent.id]


@SERVERS
async def test_a_clear_that_comes_before_the_dropper_keeps_its_inputs(band: Orchestra) -> None:
    job, (_, _, c), (_, second) = await chain(band)
    async with band.transaction() as session:
        await clear_tasks(session, [c.id])
        looking = asyncio.create_task(look(band))
        await band.until_waiting()
    await looking
    assert second not in await drop(band)
    assert await pins(band) == {(c.id, second)}
    assert (await band.job(job)).status == "running"


@SERVERS
async def test_a_clear_that_comes_after_the_dropper_is_refused(band: Orchestra) -> None:
    _, (_, _, c), (_, second) = await chain(band)
    async with band.transaction() as session:
        await table_drops.mark_unneeded(session)
        clearing = asyncio.create_task(band.coordinator.clear(c.id))
        await band.until_waiting()
    with pytest.raises(InputsGone):
        await clearing
    assert second in await drop(band)
