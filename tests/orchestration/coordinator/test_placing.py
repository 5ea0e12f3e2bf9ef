"""Placing new tasks: each gets the lane of what its job, its groups and itself need."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from aaiclick.orchestration.models import Claim, Group, Job, Task
from aaiclick.orchestration.models.children import Children
from aaiclick.orchestration.models.node import collector
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.lanes import PLAIN, canonical
from aaiclick.orchestration.store.definitions.fleet_tables import lanes
from aaiclick.orchestration.store.tables import groups, jobs, tasks
from tests.support.band import band
from tests.support.orchestra import Orchestra, done, extension, make

__all__ = ["band"]

GPU, BIG = "gpu == nvidia", "memory_gb >= 32"


async def lanes_of(band: Orchestra, table: Any = tasks) -> dict[str, Any]:
    """What each needs, by its name; nothing if it is plain."""
    known = {row.id: row.needs for row in await band.rows(select(lanes.c.id, lanes.c.needs))}
    rows = await band.rows(select(table.c.name, table.c.lane))
    return {row.name: known[row.lane] if row.lane != PLAIN else "" for row in rows}


def both(*said: str) -> str:
    return canonical({"where": sorted([*each.split(" ")[:2], each.split(" ")[2]] for each in said)})


async def test_a_task_needs_what_it_says_and_what_its_groups_and_its_job_say(band: Orchestra) -> None:
    outer = Group("outer", placement="a == x")
    inner = Group("inner", parent_group_id=outer.id, placement="b == x")
    plain = Group("plain", parent_group_id=inner.id)
    await band.submit(
        *(outer, inner, plain, make("free")),
        make("own", placement="c == x"),
        make("deep", group_id=plain.id, placement="c == x"),
        make("in outer", group_id=outer.id),
        placement="d == x",
    )
    assert await lanes_of(band) == {
        "free": both("d == x"),
        "own": both("c == x", "d == x"),
        "deep": both("a == x", "b == x", "c == x", "d == x"),
        "in outer": both("a == x", "d == x"),
    }
    deep = both("a == x", "b == x", "d == x")
    assert await lanes_of(band, groups) == {"outer": both("a == x", "d == x"), "inner": deep, "plain": deep}
    assert await lanes_of(band, jobs) == {"job": both("d == x")}


async def test_what_is_added_to_a_stored_group_needs_what_the_group_needs(band: Orchestra) -> None:
    group = Group("g", placement=GPU)
    job = await band.submit(group, make("first", group_id=group.id), placement="a == x")
    inner = Group("inner", parent_group_id=group.id, placement="b == x")
    await band.apply(job, make("more", group_id=group.id), inner, make("in inner", group_id=inner.id), make("aside"))
    assert await lanes_of(band) == {
        "first": both(GPU, "a == x"),
        "more": both(GPU, "a == x"),
        "in inner": both(GPU, "a == x", "b == x"),
        "aside": both("a == x"),
    }


async def grown(band: Orchestra, claim: Claim, *nodes: Task | Group) -> None:
    """The run of that claim has made these."""
    report = done(claim)
    made = Children.of(extension(Job(claim.job_id, "job"), *nodes), (), claim.group_id)
    receipt = await band.report(type(report)(report.task_id, report.epoch, children=made))
    assert receipt.accepted


async def test_children_need_what_the_group_and_the_job_of_their_parent_need(band: Orchestra) -> None:
    group = Group("g", placement="a == x")
    await band.submit(group, make("parent", group_id=group.id), placement="d == x")
    band.worker = (await band.coordinator.register(hostname="h", pid=2, node=node(a="x", d="x"))).id
    (claim,) = await band.claim(lanes=None)
    assert claim.lane != PLAIN
    token = collector.set(None)
    inner = Group("inner", placement="b == x")
    await grown(band, claim, make("child"), inner, make("own", group_id=inner.id, placement="c == x"))
    collector.reset(token)
    found = await lanes_of(band)
    assert found["child"] == both("a == x", "d == x")
    assert found["own"] == both("a == x", "b == x", "c == x", "d == x")
    assert await band.violations() == []


def node(**has: Any) -> NodeDescription:
    return NodeDescription("box", capabilities=has)


async def test_plain_tasks_intern_nothing(band: Orchestra) -> None:
    group = Group("g")
    job = await band.submit(group, make("t", group_id=group.id))
    await band.apply(job, make("u", group_id=group.id))
    assert await band.rows(select(lanes)) == []


async def test_a_limit_makes_a_lane_of_each_function(band: Orchestra) -> None:
    await band.submit(make("f", placement={}), make("g", placement={}), make("f", placement={}))
    rows = await band.rows(select(tasks.c.name, tasks.c.lane).distinct())
    assert len({row.lane for row in rows}) == len(rows) == 2


async def test_what_no_registered_node_can_run_is_stored_with_a_warning(
    band: Orchestra, caplog: pytest.LogCaptureFixture
) -> None:
    await band.coordinator.register(hostname="h", pid=2, node=node(gpu="amd"))
    await band.submit(make("t", placement=GPU))
    said = "no registered node can run task 't', for example: gpu is amd, needed is gpu == nvidia"
    assert said in caplog.text
    caplog.clear()
    await band.submit(make("u", placement="gpu == amd"))
    assert "no registered node" not in caplog.text
    assert len(await band.ready_names()) == 2


async def test_a_reserved_job_is_stored_without_a_warning(band: Orchestra, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever reserved it runs its tasks, whatever they need."""
    job = await band.submit(make("t", placement=GPU), reserved_for=1)
    await band.apply(job, make("u", placement=GPU))
    assert "no registered node" not in caplog.text
