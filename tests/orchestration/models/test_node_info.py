"""Nodes of the fleet: described by workers, checked at once, read back from their rows."""

from __future__ import annotations

from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest

from aaiclick.errors import InputError
from aaiclick.orchestration.models.node_info import NodeDescription, NodeInfo
from aaiclick.orchestration.rules.nodes import NodeState, NodeStatus
from aaiclick.orchestration.store.definitions.fleet_tables import nodes


def test_a_description_is_checked() -> None:
    said = NodeDescription("box", capabilities={"labels": ("a",)}, executor_types=["shell_executor"])
    assert (said.capabilities, said.executor_types) == ({"labels": ["a"]}, ["shell"])
    assert NodeDescription("box").executor_types == ["python"]


@pytest.mark.parametrize("given", [{"name": ""}, {"pool": " "}, {"capabilities": 1}, {"executor_types": "x"}])
def test_a_wrong_description_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        NodeDescription(**{"name": "box", **given})


def test_a_node_is_its_row_and_what_is_known_of_its_workers() -> None:
    names = [column.name for column in nodes.columns]
    row = SimpleNamespace(_mapping=dict.fromkeys(names) | {"state": "cordoned", "capabilities": '{"gpu": null}'})
    row._mapping["executor_types"] = '["python"]'
    node = NodeInfo.from_row(row, workers=2)
    assert (node.state, node.status, node.workers) == (NodeState.CORDONED, NodeStatus.DEAD, 2)
    assert (node.capabilities, node.executor_types) == ({"gpu": None}, ["python"])
    assert [field.name for field in fields(NodeInfo)][: len(names)] == names
