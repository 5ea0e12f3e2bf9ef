"""Lists of tasks over all jobs."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.nodes import NodeState
from aaiclick.orchestration.rules.states import TaskStatus
from aaiclick.orchestration.store.nodes.states import set_state
from aaiclick.orchestration.store.reading import task_list
from aaiclick.orchestration.store.reading.task_list import TaskChoice, count_by_node, list_blocked, list_tasks
from tests.support.band import band
from tests.support.orchestra import Orchestra, make

__all__ = ["band"]


async def names(band: Orchestra, limit: int = 2, **choice: Any) -> list[list[str]]:
    """The names on each page."""
    found: list[list[str]] = []
    before: int | None = None
    while True:
        page = await band.database.read(partial(list_tasks, choice=TaskChoice(**choice), before=before, limit=limit))
        found.append([task.name for task in page.tasks])
        if page.next is None:
            return found
        before = page.next


async def begin(band: Orchestra, name: str, **has: Any) -> int:
    node = NodeDescription(name, capabilities=has)
    return (await band.coordinator.register(hostname="h", pid=2, node=node)).id


async def test_tasks_of_all_jobs_newest_first_in_pages(band: Orchestra) -> None:
    await band.submit(make("a"), make("b"))
    await band.submit(make("c"))
    assert await names(band) == [["c", "b"], ["a"]]
    assert await names(band, 3) == [["c", "b", "a"], []]


async def test_by_status_name_lane_and_node(band: Orchestra) -> None:
    band.worker = await begin(band, "box")
    await band.submit(make("load 1"), make("load_2"), make("t", placement="a == 1"))
    first = (await band.claim(1))[0]
    await band.complete(first)
    (second,) = await band.claim(1)
    assert await names(band, 9, status=TaskStatus.COMPLETED) == [["load 1"]]
    assert await names(band, 9, name_like="load%") == [["load_2", "load 1"]]
    assert await names(band, 9, lane=(await band.task(second)).lane, status=TaskStatus.PENDING) == [[]]
    assert await names(band, 9, node="box") == [["load_2", "load 1"]]
    assert await names(band, 9, node="Box") == [[]]
    assert await band.database.read(lambda session: count_by_node(session, second.entrypoint)) != {}


async def test_a_page_looks_through_so_many_and_says_where_to_go_on(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_list, "SCAN_MAX", 3)
    await band.submit(make("rare"), *(make("t") for _ in range(7)), make("rare"))
    assert await names(band, 2, name_like="rare") == [["rare"], [], ["rare"], []]


async def test_tasks_that_no_open_node_may_run(band: Orchestra) -> None:
    await begin(band, "gpu", gpu="nvidia")
    await band.submit(
        make("ok", placement="gpu == nvidia"),
        make("low", placement="tpu == 1"),
        make("plain"),
        make("high", placement="tpu == 1", priority=5),
        make("other", placement="tpu == 2"),
    )

    async def blocked(limit: int = 9, before: int | None = None, **choice: Any) -> list[str]:
        known = band.database.lanes
        page = await band.database.read(lambda s: list_blocked(s, known, TaskChoice(**choice), before, limit))
        rest = [] if page.next is None else await blocked(limit, page.next, **choice)
        return [task.name for task in page.tasks] + rest

    assert sorted(await blocked()) == ["high", "low", "other"]
    assert await blocked(1) == await blocked()
    assert (await blocked()).index("high") < (await blocked()).index("low")
    assert await blocked(name_like="h%") == ["high"]
    await band.database.transact(lambda session: set_state(session, "gpu", NodeState.CORDONED))
    assert "ok" in await blocked()
