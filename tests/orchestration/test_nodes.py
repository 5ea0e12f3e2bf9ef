"""What can be asked of nodes, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.errors import Conflict, InputError, NotFound
from aaiclick.orchestration import (
    NodeDescription,
    cordon_node,
    deregister_worker,
    drain_node,
    get_node,
    list_nodes,
    list_workers,
    register_worker,
    remove_node,
    uncordon_node,
)
from tests.support.front_door import local, state

__all__ = ["local", "state"]


@pytest.mark.usefixtures("local")
async def test_a_node_from_its_first_worker_to_its_end() -> None:
    worker = await register_worker(node=NodeDescription("box", pool="p"))
    assert [node.name for node in await list_nodes("open", status="healthy", pool="p")] == ["box"]
    assert (await cordon_node("box")).state == "cordoned"
    assert [each.cordoned for each in await list_workers()] == [True]
    assert (await uncordon_node("box")).state == "open"
    assert (await drain_node("box")).state == "draining"
    assert [each.status for each in await list_workers()] == ["stopping"]
    with pytest.raises(Conflict, match="alive"):
        await remove_node("box")
    await deregister_worker(worker.id)
    assert await list_nodes(status="healthy") == []
    assert await remove_node("box") == (0, 0)
    assert await get_node("box") is None


@pytest.mark.usefixtures("local")
async def test_pages_of_a_status_are_full() -> None:
    for number in range(6):
        worker = await register_worker(node=NodeDescription(f"n{number}"))
        if number % 2:
            await deregister_worker(worker.id)
    assert [node.name for node in await list_nodes(limit=2, status="dead")] == ["n1", "n3"]
    assert [node.name for node in await list_nodes(limit=2, status="dead", after="n3")] == ["n5"]


@pytest.mark.usefixtures("local")
@pytest.mark.parametrize("change", [cordon_node, uncordon_node, drain_node, remove_node])
async def test_there_is_no_such_node(change: Any) -> None:
    with pytest.raises(NotFound, match="aaiclick node list"):
        await change("nobody")
    with pytest.raises(InputError):
        await change("")
