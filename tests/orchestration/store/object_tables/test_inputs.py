"""New tasks that need tables which are there already."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from aaiclick.errors import InputsGone
from aaiclick.orchestration.models import Claim, Group
from aaiclick.orchestration.rules.values.run_tables import tables_named
from aaiclick.orchestration.store.claims.reports import take_reports
from aaiclick.orchestration.store.graphs.extensions import extend_job
from aaiclick.orchestration.store.object_tables import inputs
from aaiclick.orchestration.store.object_tables.inputs import InputReading
from aaiclick.orchestration.store.retention import table_drops
from aaiclick.orchestration.store.stored_results import FoundResults
from tests.support.band import SERVERS, band, member
from tests.support.growing import grown
from tests.support.orchestra import Orchestra, extension, make
from tests.support.tables import drop, hold, look, pins, registered, returned

__all__ = ["band"]


async def the_next(band: Orchestra) -> Claim:
    (claim,) = await band.claim()
    return claim


async def run(band: Orchestra, claim: Claim) -> str:
    """Run one that returns a table."""
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table, made=(table,)))
    return table


def reference(table: str) -> dict[str, str]:
    return {"object_type": "object", "table": table}


async def test_a_late_consumer_pins_what_is_there(band: Orchestra) -> None:
    a, open_one = make("a"), make("open")
    job = await band.submit(a, open_one, preservation_mode="full")
    claims = await band.claim_named()
    table = await run(band, claims["a"])
    late = make("late", kwargs={"x": a})
    await band.apply(job, late)
    assert await pins(band) == {(late.id, table)}


async def test_a_late_consumer_of_a_table_that_is_gone_is_refused(band: Orchestra) -> None:
    a, open_one = make("a"), make("open")
    job = await band.submit(a, open_one)
    table = await run(band, (await band.claim_named())["a"])
    assert await drop(band) == {table}
    late = make("late", kwargs={"x": a})
    with pytest.raises(InputsGone, match=f"task 'late' \\({late.id}\\) needs {table}"):
        await band.apply(job, late)
    assert await band.statuses(job) == {"a": "completed", "open": "claimed"}
    with pytest.raises(InputsGone):
        await band.apply(job, make("other", kwargs={"x": reference(table)}))


async def test_a_late_consumer_of_a_group_pins_what_its_members_made_and_will_make(band: Orchestra) -> None:
    parts, first = Group("parts"), make("first")
    for name in ("p1", "p2"):
        member(parts, name)
    early = make("early", kwargs={"x": parts})
    job = await band.submit(parts, first, early)
    claims = await band.claim_named()
    one = await run(band, claims["p1"])
    late = make("late", kwargs={"x": parts})
    await band.apply(job, late)
    assert await pins(band) == {(early.id, one), (late.id, one)}
    two = await run(band, claims["p2"])
    assert await pins(band) == {(task.id, table) for task in (early, late) for table in (one, two)}


async def test_what_a_task_returned_is_pinned_for_those_who_ask_later(band: Orchestra) -> None:
    parent, open_one = make("parent"), make("open")
    job = await band.submit(parent, open_one, preservation_mode="full")
    child = make("child")
    await band.report(grown((await band.claim_named())["parent"], child, returns=child))
    table = await run(band, await the_next(band))
    late = make("late", kwargs={"x": parent})
    await band.apply(job, late)
    assert await pins(band) == {(late.id, table)}


async def test_a_run_that_returns_a_task_which_is_complete_hands_on_its_tables(band: Orchestra) -> None:
    old, parent = make("old"), make("parent")
    reader = make("reader", kwargs={"x": parent})
    await band.submit(old, parent, reader, preservation_mode="full")
    claims = await band.claim_named()
    table = await run(band, claims["old"])
    await band.report(grown(claims["parent"], make("child"), returns=old))
    assert await pins(band) == {(reader.id, table)}


async def test_a_child_that_reads_a_complete_task_pins_its_tables(band: Orchestra) -> None:
    old, parent = make("old"), make("parent")
    await band.submit(old, parent, preservation_mode="full")
    claims = await band.claim_named()
    table = await run(band, claims["old"])
    child = make("child", kwargs={"x": old})
    await band.report(grown(claims["parent"], child))
    assert await pins(band) == {(child.id, table)}


async def test_a_child_that_reads_what_is_gone_fails_its_parent(band: Orchestra) -> None:
    old, parent = make("old"), make("parent")
    job = await band.submit(old, parent)
    claims = await band.claim_named()
    await run(band, claims["old"])
    await drop(band)
    (mine,) = await hold(band, claims["parent"])
    done = replace(grown(claims["parent"], make("child", kwargs={"x": old})), holds=True, made=(mine,))
    await band.report(done)
    assert await band.statuses(job) == {"old": "completed", "parent": "failed"}
    assert "InputsGone" in ((await band.task(parent)).error or "")
    assert await drop(band) == {mine}


@SERVERS
async def test_an_apply_that_comes_before_the_dropper_keeps_the_table(band: Orchestra) -> None:
    a, open_one = make("a"), make("open")
    job = await band.submit(a, open_one)
    table = await run(band, (await band.claim_named())["a"])
    late = make("late", kwargs={"x": a})
    async with band.transaction() as session:
        await extend_job(session, extension(job, late))
        looking = asyncio.create_task(look(band))
        await band.until_waiting()
    await looking
    assert await registered(band) == {table}
    assert await drop(band) == set()


@SERVERS
async def test_an_apply_that_comes_after_the_dropper_is_refused(band: Orchestra) -> None:
    a, open_one = make("a"), make("open")
    job = await band.submit(a, open_one)
    await run(band, (await band.claim_named())["a"])
    async with band.transaction() as session:
        await table_drops.mark_unneeded(session)
        applying = asyncio.create_task(band.apply(job, make("late", kwargs={"x": a})))
        await band.until_waiting()
    with pytest.raises(InputsGone):
        await applying


@SERVERS
@pytest.mark.parametrize("by_group", [False, True])
async def test_a_publication_that_waits_for_an_apply_sees_its_new_reader(band: Orchestra, by_group: bool) -> None:
    parts, other = Group("parts"), make("other")
    maker = member(parts, "maker")
    member(parts, "beside")
    job = await band.submit(parts, other)
    claims = await band.claim_named()
    (table,) = await hold(band, claims["maker"])
    late = make("late", kwargs={"x": parts if by_group else maker})
    async with band.transaction() as session:
        await extend_job(session, extension(job, late))
        publishing = asyncio.create_task(band.report(returned(claims["maker"], table, made=(table,))))
        await band.until_waiting()
    await publishing
    assert await pins(band) == {(late.id, table)}


@SERVERS
@pytest.mark.parametrize("by_group", [False, True])
async def test_an_apply_that_waits_for_a_publication_sees_the_table(band: Orchestra, by_group: bool) -> None:
    parts, other = Group("parts"), make("other")
    maker = member(parts, "maker")
    member(parts, "beside")
    job = await band.submit(parts, other)
    claims = await band.claim_named()
    (table,) = await hold(band, claims["maker"])
    late = make("late", kwargs={"x": parts if by_group else maker})
    async with band.transaction() as session:
        await take_reports(session, band.worker, [returned(claims["maker"], table, made=(table,))], lambda: 1.0)
        applying = asyncio.create_task(band.apply(job, late))
        await band.until_waiting()
    await applying
    assert await pins(band) == {(late.id, table)}


# ---------------------------------------------------------------- what a text reaches


def text_of(*tasks: int, table: str | None = None) -> str:
    """A value that refers to the results of tasks, or an Object."""
    if table is not None:
        return json.dumps(reference(table))
    return json.dumps({"object_type": "pyobj", "value": None, "marks": [[[], "task", task] for task in tasks]})


def test_whether_any_table_is_reached_is_known_with_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    many = {task: text_of(table=f"t{task}_1_1") for task in range(1, 5_001)}
    reading = InputReading(FoundResults(texts=dict(many)))
    asked: list[str | None] = []

    def counted(text: str | None) -> frozenset[str]:
        asked.append(text)
        return tables_named(text)

    monkeypatch.setattr(inputs, "tables_named", counted)
    assert reading.reaches_any(text_of(*many))
    assert len(asked) == 2


def test_what_is_reached_by_way_of_results_counts_too_and_rings_end() -> None:
    texts: dict[int, str | None] = {
        1: text_of(2),
        2: text_of(1, 3),
        3: text_of(table="t9_1_1"),
        4: text_of(5),
        5: text_of(4),
    }
    reading = InputReading(FoundResults(texts=texts))
    assert reading.reaches_any(text_of(1))
    assert reading.reached(text_of(1)) == {"t9_1_1"}
    assert not reading.reaches_any(text_of(4, 6))
    assert reading.reaches_any(text_of(table="t9_1_1"))
