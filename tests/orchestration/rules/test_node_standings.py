"""What keeps nodes from running a task."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from aaiclick.orchestration.models.node_info import NodeInfo
from aaiclick.orchestration.rules.node_standings import NodeStanding, standings, told
from aaiclick.orchestration.rules.nodes import NodeState, NodeStatus

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
NEEDS = {"where": [["gpu", "==", "nvidia"]], "max_parallel": 2, "entrypoint": "m.f"}


def node(number: int, state: str = "open", status: str = "healthy", **has: Any) -> NodeInfo:
    name, stands = f"n{number}", (NodeState(state), NodeStatus(status))
    return NodeInfo(number, name, None, stands[0], has, ["python"], NOW, NOW, stands[1])


def test_each_node_has_its_reasons() -> None:
    there = [
        node(1, gpu="nvidia"),
        node(2),
        node(3, "cordoned", gpu="nvidia"),
        node(4, "draining", gpu="nvidia"),
        node(5, "open", "dead", gpu="nvidia"),
        node(6, gpu="nvidia"),
        node(7, gpu="amd"),
    ]
    found = standings(NEEDS, there, {6: 2, 7: 2, 1: 1})
    assert [(each.name, [*each.missing], each.is_full) for each in found] == [
        ("n1", [], False),
        ("n2", ["gpu is unknown, needed is gpu == nvidia"], False),
        ("n3", ["it is cordoned"], False),
        ("n4", ["it is being drained"], False),
        ("n5", ["it has no live worker"], False),
        ("n6", ["it runs 2 tasks of this function, allowed are 2"], True),
        (
            "n7",
            ["gpu is amd, needed is gpu == nvidia", "it runs 2 tasks of this function, allowed are 2"],
            False,
        ),
    ]


OTHER = {"retry_node": "other", "previous": "n1", "where": [["gpu", "==", "nvidia"]], "patience_s": 5.0}


def test_the_node_of_a_failed_attempt_says_who_takes_the_task_and_when() -> None:
    there = [node(1, gpu="nvidia"), node(2, gpu="nvidia"), node(3, gpu="amd"), node(4, "cordoned", gpu="nvidia")]
    found = standings(OTHER, there, {})
    assert [each.later for each in found] == ["the last attempt failed here, and other nodes may run it", "", "", ""]
    (alone, *_) = standings(OTHER, [there[0], *there[2:], node(5, "open", "dead", gpu="nvidia")], {})
    assert alone.missing == []
    assert alone.later == (
        "the last attempt failed here; since no other node may run it, it takes the task once that has waited for 5 s"
    )
    assert told([alone]).startswith("n1 (the last attempt failed here; ")


def test_nodes_that_are_not_wished_for_say_which_is() -> None:
    there = [node(1, gpu="nvidia"), node(2)]
    after = "it takes the task once that has waited for 2 s"
    for needs, words in (
        ({"retry_node": "same", "previous": "n1"}, "node n1 ran the last attempt"),
        ({"near": "inputs", "inputs_on": "n1"}, "node n1 ran most of its inputs"),
        ({"prefers": [["gpu", "==", "nvidia"]]}, "other nodes are preferred"),
    ):
        assert [each.later for each in standings(needs | {"patience_s": 2.0}, there, {})] == ["", f"{words}; {after}"]
    assert [each.later for each in standings({"retry_node": "same", "patience_s": 2.0}, there, {})] == ["", ""]


def test_a_line_names_a_few() -> None:
    many = [NodeStanding(f"n{number}", "healthy", "open", ["no", "way"]) for number in range(7)]
    assert told(many[:1]) == "n0 (no; way)"
    assert told(many).endswith("n4 (no; way), and 2 more")
    assert told([]) == "no node is registered"
