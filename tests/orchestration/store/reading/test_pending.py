"""What can be found of a task that is not running, on each of the three databases."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event, insert, update

from aaiclick.orchestration.models import Group, WorkerStatus
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.nodes import NodeState
from aaiclick.orchestration.rules.pending import Facts, Fleet, Reason, judge
from aaiclick.orchestration.store.moves import ripples
from aaiclick.orchestration.store.nodes.states import set_state
from aaiclick.orchestration.store.reading import pending
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, ready, tasks, workers
from tests.support.band import band as band
from tests.support.band import filled, member
from tests.support.orchestra import LONG_AGO, Orchestra, failing, make


async def facts_of(band: Orchestra, node: Node) -> Facts:
    found = await band.database.read(lambda session: pending.read_facts(session, node.id))
    assert found is not None
    return found


async def change(band: Orchestra, statement: Any) -> None:
    async def work(session: Session) -> None:
        await session.run(statement)

    await band.database.transact(work)


def named(facts: Facts) -> list[tuple[str, str, str | None]]:
    return [(blocker.kind, blocker.name, blocker.gate) for blocker in facts.blockers]


async def test_no_such_task(band: Orchestra) -> None:
    assert await band.database.read(lambda session: pending.read_facts(session, 12345)) is None


# ---------------------------------------------------------------- what it waits for


async def test_tasks_and_groups_that_come_before_it_until_they_are_complete(band: Orchestra) -> None:
    first, last, group = make("first"), make("last"), filled("g")
    member(group, "another")
    first >> last
    group >> last
    await band.submit(first, last, group)
    found = await facts_of(band, last)
    assert named(found) == [("task", "first", None), ("group", "g", None)]
    assert [blocker.open_count for blocker in found.blockers] == [0, 2]
    assert found.more == 0
    claimed = await band.claim_named()
    await band.complete(claimed["first"], claimed["in g"])
    found = await facts_of(band, last)
    assert [(blocker.name, blocker.status, blocker.open_count) for blocker in found.blockers] == [("g", "open", 1)]
    await band.complete(claimed["another"])
    found = await facts_of(band, last)
    assert (found.unmet, found.blockers, found.in_queue) == (False, [], True)


async def test_the_gates_of_all_groups_around_it(band: Orchestra) -> None:
    outer = Group("outer")
    inner = Group("inner", parent_group_id=outer.id)
    deep, own, before_outer, before_inner = member(inner, "deep"), make("own"), filled("source"), make("before inner")
    own >> deep
    before_outer >> outer
    before_inner >> inner
    await band.submit(outer, inner, own, before_outer, before_inner)
    found = await facts_of(band, deep)
    assert sorted(named(found)) == [
        ("group", "source", "outer"),
        ("task", "before inner", "inner"),
        ("task", "own", None),
    ]
    assert found.more == 0
    await band.complete(*(await band.claim_named(1)).values())


async def test_only_some_are_named_and_the_others_counted(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "LISTED_MAX", 3)
    group = Group("g")
    inside, last = member(group, "inside"), make("last")
    many, before = [make(f"t{number}") for number in range(8)], [make(f"b{number}") for number in range(4)]
    for task in many:
        task >> last
    for task in before:
        task >> group
    last >> inside
    await band.submit(*many, *before, last, group)
    found = await facts_of(band, last)
    assert [blocker.name for blocker in found.blockers] == ["t0", "t1", "t2"]
    assert found.more == 5
    found = await facts_of(band, inside)
    assert (len(found.blockers), found.more) == (3, 2)
    claimed = await band.claim_named()
    await band.complete(*(claimed[f"t{number}"] for number in range(6)))
    found = await facts_of(band, last)
    assert ([blocker.name for blocker in found.blockers], found.more) == (["t6", "t7"], 0)


async def test_of_very_many_not_all_are_looked_at(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, last = make("first"), make("second"), make("last")
    first >> last
    second >> last
    await band.submit(first, second, last)
    claimed = await band.claim_named()
    await band.complete(claimed["first"])
    monkeypatch.setattr(pending, "EDGES_MAX", 1)
    found = await facts_of(band, last)
    assert found.is_cut or [blocker.name for blocker in found.blockers] == ["second"]
    assert judge(found).reason is Reason.WAITS


async def test_news_that_are_on_their_way(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    async def wait(*_: object) -> bool:
        return False

    monkeypatch.setattr(ripples, "STEP", 0)
    monkeypatch.setattr(ripples, "work_one_ripple", wait)
    first, second = make("first"), make("second")
    first >> second
    await band.submit(first, second)
    await band.complete(*await band.claim())
    assert await band.ripples()
    found = await facts_of(band, second)
    assert (found.unmet, found.blockers) == (True, [])


async def test_of_what_is_doomed_the_failures(band: Orchestra) -> None:
    bad, good, last, group = make("bad"), make("good"), make("last"), filled("g")
    bad >> last
    good >> last
    bad >> group
    inside = next(iter(await _members(band, group, bad, good, last)))
    await band.drain(failing("bad"))
    found = await facts_of(band, last)
    assert (found.status, named(found)) == ("upstream_failed", [("task", "bad", None)])
    doomed = await band.database.read(lambda session: pending.read_facts(session, inside))
    assert doomed is not None
    assert named(doomed) == [("task", "bad", "g")]


async def _members(band: Orchestra, group: Group, *nodes: Node) -> list[int]:
    await band.submit(group, *nodes)
    return [row.id for row in await band.rows(tasks.select().where(tasks.c.group_id == group.id))]


# ---------------------------------------------------------------- the queue and the workers


async def test_how_many_are_before_it(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    early, late, urgent = make("early"), make("late"), make("urgent", priority=5)
    await band.submit(early, late, urgent)
    order = [(await facts_of(band, node)).before for node in (urgent, early, late)]
    assert order == [0, 1, 2]
    monkeypatch.setattr(pending, "BEFORE_MAX", 1)
    assert (await facts_of(band, late)).before == 1


async def test_a_place_in_the_queue_of_what_is_reserved_is_its_own(band: Orchestra) -> None:
    ours, theirs = make("ours"), make("theirs")
    await band.submit(ours)
    job = await band.submit(theirs)
    await band.coordinator.reserve(job.id, band.worker)
    found = await facts_of(band, theirs)
    assert (found.in_queue, found.before) == (True, 0)
    assert found.kept_by is not None
    assert (found.kept_by.id, found.kept_by.hostname, found.kept_by.is_live) == (band.worker, "here", True)
    assert (await facts_of(band, ours)).kept_by is None


async def test_a_task_that_fell_out_of_the_queue(band: Orchestra) -> None:
    task = make()
    await band.submit(task)
    await change(band, ready.delete())
    found = await facts_of(band, task)
    assert (found.unmet, found.run_after, found.in_queue) == (False, None, False)


async def test_the_time_it_waits_for_is_the_databases(band: Orchestra) -> None:
    task = make(max_retries=1)
    await band.submit(task)
    await band.fail(*await band.claim())
    found = await facts_of(band, task)
    assert found.run_after is not None
    assert timedelta(0) < found.run_after - found.now < timedelta(days=1)
    assert not found.has_leader


async def test_who_has_it(band: Orchestra) -> None:
    task = make()
    await band.submit(task)
    await band.claim()
    found = await facts_of(band, task)
    assert found.status == "claimed"
    assert found.holder is not None
    assert (found.holder.id, found.holder.pid, found.holder.is_live) == (band.worker, 1, True)
    await change(band, update(workers).values(expires_at=LONG_AGO))
    found = await facts_of(band, task)
    assert found.holder is not None
    assert not found.holder.is_live
    await change(band, workers.delete())
    found = await facts_of(band, task)
    assert found.holder is not None
    assert (found.holder.id, found.holder.is_live) == (band.worker, False)


async def test_the_fleet_is_those_who_are_live(band: Orchestra) -> None:
    task = make()
    await band.submit(task)
    assert (await facts_of(band, task)).fleet == Fleet(live=1, slots=1)
    for pid, status, concurrency in ((2, "active", 2), (3, "stopping", 4), (4, "stopped", 8), (5, "active", 16)):
        worker = await band.coordinator.register(hostname="there", pid=pid, concurrency=concurrency)
        over = {"expires_at": LONG_AGO} if pid == 5 else {}
        await change(band, update(workers).where(workers.c.id == worker.id).values(status=WorkerStatus(status), **over))
        held = [{"worker_id": worker.id, "task_id": pid * 10 + number, "epoch": 1} for number in range(3)]
        await change(band, insert(claims).values(held))
    assert (await facts_of(band, task)).fleet == Fleet(live=3, draining=1, full=1, slots=3, taken=2)


async def test_who_runs_a_job_test_takes_nothing_of_others(band: Orchestra) -> None:
    task = make()
    await band.submit(task)
    await change(band, update(workers).values(concurrency=0))
    found = await facts_of(band, task)
    assert (found.fleet, judge(found).reason) == (Fleet(), Reason.NO_WORKER)


async def test_of_each_node_it_is_told_what_it_lacks(band: Orchestra) -> None:
    one = make("f", placement={"where": "gpu == nvidia"})
    other = make("f", placement={"where": "gpu == nvidia"})
    await band.submit(one, other)
    found = await facts_of(band, other)
    assert (found.nodes, judge(found).reason) == ([], Reason.PLACEMENT)
    for name, gpu in (("a", None), ("b", "nvidia")):
        node = NodeDescription(name, capabilities={"gpu": gpu})
        band.worker = (await band.coordinator.register(hostname="there", pid=2, node=node)).id
    told = {node.name: [*node.missing] for node in (await facts_of(band, other)).nodes}
    assert told == {"a": ["gpu is none, needed is gpu == nvidia"], "b": []}
    (claim,) = await band.claim(lanes=None)
    left = other if claim.task_id == one.id else one
    found = await facts_of(band, left)
    assert judge(found).reason is Reason.LIMITED
    assert [node.name for node in found.nodes if node.is_full] == ["b"]
    await band.database.transact(lambda session: set_state(session, "b", NodeState.CORDONED))
    found = await facts_of(band, left)
    assert (judge(found).reason, found.fleet.draining) == (Reason.PLACEMENT, 1)


# ---------------------------------------------------------------- its cost


async def test_the_number_of_statements_does_not_grow(band: Orchestra) -> None:
    last = make("last")
    some = [make(f"t{number}") for number in range(50)]
    for task in some:
        task >> last
    await band.submit(*some, last)
    seen: list[str] = []

    def count(*told: Any) -> None:
        seen.append(told[2])

    engine = getattr(band.database.engine, "sync_engine", band.database.engine)
    event.listen(engine, "before_cursor_execute", count)
    try:
        await facts_of(band, last)
    finally:
        event.remove(engine, "before_cursor_execute", count)
    assert 0 < len(seen) <= 8


async def test_a_holder_that_cannot_report(band: Orchestra) -> None:
    task = make("a")
    await band.submit(task)
    await band.claim()
    assert "report" not in judge(await facts_of(band, task)).line
    await band.coordinator.beat(band.worker, unreported_s=95)
    assert "; that worker has not been able to report for 95 s" in judge(await facts_of(band, task)).line
