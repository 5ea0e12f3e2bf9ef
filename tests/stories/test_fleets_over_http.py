"""Scenarios of a fleet, told from outside: over HTTP, by processes and by signals."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from aaiclick.ids import new_id
from aaiclick.orchestration import PlacementConstraints
from aaiclick.orchestration.models import Group, Job
from aaiclick.orchestration.rules.roles import Role
from aaiclick.orchestration.store import tables
from tests.support.fleet import Fleet, all_gone, eventually, fleet, servers_only
from tests.support.remote import Remote, remote_fleet, token_for

__all__ = ["fleet"]

pytestmark = [servers_only, pytest.mark.timeout(300)]

CLAIMERS, TASKS, AT_ONCE = 8, 200, 5
CALM_S = "60"


@pytest.fixture
async def remote(fleet: Fleet) -> Remote:
    fleet.env |= {"AAICLICK_SESSION_SECONDS": CALM_S, "AAICLICK_CRASHES_MAX": "3"}
    return await remote_fleet(fleet)


def asking(remote: Remote, token: str) -> httpx.AsyncClient:
    """A client that knows nothing of this package."""
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json", "Aaiclick-Node": "1"}
    return httpx.AsyncClient(base_url=f"{remote.url}/api/v1", headers=headers, timeout=60)


async def told(answer: httpx.Response) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()


def pairs_of(answer: Any) -> list[tuple[int, int]]:
    """What was claimed; answers leave out what is empty."""
    return [(claim["task_id"], claim["epoch"]) for claim in answer.get("claims", [])]


async def claims_all(client: httpx.AsyncClient, number: int) -> list[tuple[int, int]]:
    """What one claimer gets until there is nothing left; each call is made twice, as if its answer had been lost."""
    worker, taken = new_id(), list[tuple[int, int]]()
    await told(await client.post("/node/register", json={"worker": worker, "hostname": "raw", "pid": number}))
    for call in range(1, TASKS):
        asked = {"worker": worker, "limit": AT_ONCE, "call": call}
        found = pairs_of(await told(await client.post("/node/claim", json=asked)))
        if not found:
            return taken
        again = pairs_of(await told(await client.post("/node/claim", json=asked | {"again": True})))
        assert sorted(again) == sorted(found)
        taken += found
        done = [{"task_id": task, "epoch": epoch} for task, epoch in found]
        receipt = await told(await client.post("/node/report", json={"worker": worker, "done": done}))
        assert sorted(map(tuple, receipt["accepted"])) == sorted(found)
    raise AssertionError("the tasks have no end")


async def test_a4_raw_claimers_get_each_task_once(remote: Remote) -> None:
    fleet = remote.fleet
    job = await fleet.submit(*fleet.quick(TASKS))
    async with asking(remote, remote.token) as client:
        taken = await asyncio.gather(*(claims_all(client, number) for number in range(CLAIMERS)))
    pairs = [pair for each in taken for pair in each]
    assert len(pairs) == len({*pairs}) == TASKS
    assert {epoch for _, epoch in pairs} == {1}
    assert (await fleet.end_of(job)).status == "completed"


@pytest.mark.long
async def test_a5_one_slot_takes_them_by_priority_and_then_the_older_first(remote: Remote) -> None:
    fleet = remote.fleet
    fleet.let()
    older = [fleet.errand("waits", f"old{priority}", priority=priority) for priority in (0, 9, 1)]
    newer = [fleet.errand("waits", f"new{priority}", priority=priority) for priority in (9, 0)]
    jobs = [await fleet.submit(*older), await fleet.submit(*newer)]
    await remote.workers(1, concurrency=1)
    for job in jobs:
        assert (await fleet.end_of(job)).status == "completed"
    assert [note.name for note in fleet.notes("began")] == ["old9", "new9", "old1", "old0", "new0"]


@pytest.mark.long
async def test_a7_what_waits_for_a_group_begins_after_all_of_it_on_whichever_worker(remote: Remote) -> None:
    fleet = remote.fleet
    first, last = fleet.errand("waits", "a"), fleet.errand("waits", "d")
    between = Group("between")
    members = [fleet.errand("waits", name, group_id=between.id) for name in ("b", "c")]
    first >> between >> last
    job = await fleet.submit(first, between, *members, last)
    workers = await remote.workers(2, concurrency=1)
    await fleet.noted("began", 1)
    fleet.let("a")
    await fleet.noted("began", 3)
    rows = await fleet.tasks(job)
    assert {rows[name].worker_id for name in ("b", "c")} == {await fleet.session_of(worker) for worker in workers}
    fleet.let("b")
    await fleet.noted("ended", 2)
    assert len(fleet.notes("began")) == 3
    fleet.let("c", "d")
    assert (await fleet.end_of(job)).status == "completed"
    words = [f"{note.name} {note.what}" for note in fleet.notes()]
    assert words.index("d began") > max(words.index("b ended"), words.index("c ended"))


@pytest.mark.long
async def test_a8_only_the_node_that_has_it_runs_a_task(remote: Remote) -> None:
    fleet = remote.fleet
    needs = PlacementConstraints(requires_capabilities={"gpu": "nvidia"}, forbidden_nodes=["W1"])
    job = await fleet.submit(fleet.errand("waits", "gpu", placement=needs), *fleet.quick(3))
    joining = await token_for(fleet, Role.JOIN)
    remote.token = joining
    (first,) = await remote.workers(1, "--node-name", "W1", "--capability", "gpu=none")
    await eventually(lambda: counted(fleet, job, "completed", 3), fleet.explain)
    (row,) = (each for each in (await fleet.tasks(job)).values() if each.name == "gpu")
    async with asking(remote, await token_for(fleet, Role.VIEWER)) as client:
        why = await told(await client.get(f"/tasks/{row.id}/pending"))
        assert why["reason"] == "placement"
        (missing,) = [node["missing"] for node in why["nodes"] if node["name"] == "W1"]
        assert missing == ["gpu is none, needed is gpu == nvidia", "it is forbidden"]
        blocked = await told(await client.get("/tasks", params={"blocked": "placement"}))
        assert [task["id"] for task in blocked["tasks"]] == [str(row.id)]
    (second,) = await remote.workers(1, "--node-name", "W2", "--capability", "gpu=nvidia")
    await fleet.noted("began", 1)
    fleet.let()
    assert (await fleet.end_of(job)).status == "completed"
    assert (await fleet.tasks(job))["gpu"].worker_id == await fleet.session_of(second)
    assert first.alive


async def counted(fleet: Fleet, job: Job, status: str, count: int) -> bool:
    return Counter(row.status for row in (await fleet.tasks(job)).values())[status] == count


@pytest.mark.long
async def test_a9_never_two_at_once_on_a_node(remote: Remote) -> None:
    """One node with four slots: whoever is there alone leaves a file behind only after the other has gone."""
    fleet = remote.fleet
    once = PlacementConstraints(max_parallel_per_node=1)
    tasks = [fleet.errand("waits", f"once{number}", placement=once) for number in range(3)]
    job = await fleet.submit(*tasks)
    await remote.workers(1, concurrency=4)
    for number in range(1, 4):
        (*_, newest) = await fleet.noted("began", number)
        fleet.let(newest.name)
    assert (await fleet.end_of(job)).status == "completed"
    words = [note.what for note in fleet.notes()]
    assert words == ["began", "ended"] * 3


@pytest.mark.long
async def test_b6_a_body_that_kills_its_process_is_given_up_and_harms_nobody(remote: Remote) -> None:
    fleet = remote.fleet
    other = fleet.errand("waits")
    deadly = fleet.errand("dies")
    job = await fleet.submit(deadly, other)
    await remote.workers(1, concurrency=2)
    await fleet.noted("began", 3, "dies")
    await eventually(lambda: counted(fleet, job, "failed", 1), fleet.explain)
    async with asking(remote, await token_for(fleet, Role.VIEWER)) as client:
        letters = await told(await client.get("/dead-letters"))
    assert [task["id"] for task in letters["tasks"]] == [str(deadly.id)]
    fleet.let()
    assert (await fleet.end_of(job)).status == "failed"
    assert await fleet.outcomes(deadly) == ["crashed"] * 3
    assert await fleet.outcomes(other) == ["completed"]


@pytest.mark.long
async def test_b11_cancelling_a_job_ends_its_bodies_and_what_waits_for_them(remote: Remote) -> None:
    fleet = remote.fleet
    running, then = fleet.errand("ignores", "first"), fleet.errand("waits", "then")
    running >> then
    job = await fleet.submit(running, then)
    (worker,) = await remote.workers(1)
    (began,) = await fleet.noted("began", 1)
    async with asking(remote, await token_for(fleet, Role.OPERATOR)) as client:
        assert await told(await client.post(f"/jobs/{job.id}/cancel")) == {"cancelled": True}
        assert {row.status for row in (await fleet.tasks(job)).values()} == {"cancelled"}
        await all_gone([began.pid])
        late = {"worker": await fleet.session_of(worker), "done": [{"task_id": running.id, "epoch": 1}]}
        client.headers["Authorization"] = f"Bearer {remote.token}"
        receipt = await told(await client.post("/node/report", json=late))
    assert receipt["accepted"] == []
    assert (await fleet.end_of(job)).status == "cancelled"
    assert [note.name for note in fleet.notes("began")] == ["first"]


@pytest.mark.long
async def test_c5_a_leader_that_was_paused_finds_another_and_repairs_nothing_twice(remote: Remote) -> None:
    fleet = remote.fleet
    fleet.env |= {"AAICLICK_SESSION_SECONDS": "4", "AAICLICK_LOSSES_MAX": "1000"}
    leaders = [fleet.start("background", "start", "-v") for _ in range(2)]
    await eventually(lambda: any(" leads (term" in each.said() for each in leaders), fleet.explain)
    term = await fleet.scalar(select(tables.terms.c.term))
    leaders.sort(key=lambda each: " leads (term" not in each.said())
    paused, heir = leaders
    (doomed,) = await remote.workers(1)
    task = fleet.errand("waits")
    job = await fleet.submit(task)
    await fleet.noted("began", 1)
    async with fleet.transaction():
        paused.signal(signal.SIGSTOP)
    doomed.kill()
    await eventually(lambda: " leads (term" in heir.said(), fleet.explain)
    await remote.workers(1, AAICLICK_SESSION_SECONDS=CALM_S)
    await fleet.noted("began", 2)
    paused.signal(signal.SIGCONT)
    fleet.let()
    assert (await fleet.end_of(job)).status == "completed"
    assert await fleet.outcomes(task) == ["lost", "completed"]
    assert await fleet.scalar(select(tables.terms.c.term)) > term
    assert paused.alive
