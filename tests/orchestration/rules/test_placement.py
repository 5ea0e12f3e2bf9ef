"""Placement: one canonical form of what is said, and which nodes meet it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aaiclick.errors import InputError
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.placement import (
    PlacementConstraints,
    holds,
    lane_needs,
    leaves_to_others,
    merge,
    misses,
    needs_of,
    prefers,
    room_on_node,
    satisfies_placement,
)

HAS = {"gpu": "nvidia", "memory_gb": 32, "labels": ["fast", "red"], "python": "3.11.2", "spot": False, "disk": None}
NODE = NodeDescription("box", pool="p", capabilities=HAS, executor_types=["python", "rest"])


def needs(given: Any) -> dict[str, Any]:
    return json.loads(needs_of(given) or "{}")


# ---------------------------------------------------------------- as the specification prints it


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        ({"requires_executors": ["docker_executor", "rest_executor"]}, True),
        ({"requires_executors": ["docker"]}, False),
        ({"requires_capabilities": {"gpu": "nvidia", "memory_gb": 32}}, True),
        ({"requires_capabilities": {"gpu": "amd"}}, False),
        ({"requires_capabilities": {"tpu": 1}}, False),
        ({"requires_capabilities": {"disk": None}}, True),
        ({"requires_capabilities": {"labels": "fast"}}, True),
        ({"requires_capabilities": {"labels": ["red", "fast"]}}, True),
        ({"requires_capabilities": {"labels": ["red", "slow"]}}, False),
        ({"requires_capabilities": {"memory_gb": {">=": 32, "<": 64}}}, True),
        ({"requires_capabilities": {"memory_gb": {">": 32}}}, False),
        ({"allowed_nodes": ["box", "other"]}, True),
        ({"allowed_nodes": ["other"]}, False),
        ({"allowed_nodes": []}, True),
        ({"forbidden_nodes": ["box"]}, False),
        ({"forbidden_nodes": ["Box"]}, True),
        ({"where": "memory_gb >= 32"}, True),
        ({"where": ["memory_gb >= 32", "gpu != nvidia"]}, False),
        ({"where": "python >= 3.9"}, False),
        ({"where": "python >= '3.9'"}, True),
        ({"labels_all": ["red"]}, True),
        ({"labels_any": ["blue", "red"]}, True),
        ({"labels_any": ["blue"]}, False),
        ({"pool": "p"}, True),
        ({"pool": "q"}, False),
        ({"prefers": "gpu == amd"}, True),
        ({}, True),
    ],
)
def test_what_a_node_has_to_be(given: dict[str, Any], fits: bool) -> None:
    assert satisfies_placement(PlacementConstraints(**given), NODE) is fits
    assert satisfies_placement(given, NODE) is fits
    assert (misses(needs(given), NODE) == []) is fits


def test_which_node_an_attempt_wishes_for() -> None:
    said = PlacementConstraints(retry_node="same", near="inputs", max_parallel_per_node=None)
    assert needs(said) == {"retry_node": "same", "near": "inputs", "patience_s": 5.0}
    assert prefers(needs(said), NODE), "no node is named yet"
    for named in ({"previous": "other"}, {"inputs_on": "other"}):
        assert not prefers(needs(said) | named, NODE)
        assert not misses(needs(said) | named, NODE), "it is a wish"
    assert prefers({"retry_node": "other", "previous": "box"}, NODE), "that is more than a wish"
    inner = needs_of({"retry_node": "other", "patience_s": 1, "max_parallel_per_node": None})
    both = json.loads(merge(needs_of(said), inner))
    assert both == {"retry_node": "other", "near": "inputs", "patience_s": 1.0}
    for refused in ({"retry_node": "Same"}, {"retry_node": True}, {"near": "same"}, {"near": ["inputs"]}):
        with pytest.raises(InputError, match=r"must be ('same' or 'other'|'inputs'), or None"):
            needs_of(refused)


def test_a_node_leaves_what_failed_there_to_others_that_meet_the_rest() -> None:
    given = needs({"retry_node": "other", "where": "memory_gb >= 32"})
    large, small = NodeDescription("large", capabilities={"memory_gb": 64}), NodeDescription("small")
    assert not leaves_to_others(given, NODE, [large])
    failed = given | {"previous": "box"}
    assert leaves_to_others(failed, NODE, [NODE, small, large])
    assert not leaves_to_others(failed, NODE, [NODE, small])
    assert not leaves_to_others(failed, large, [NODE, small])
    assert satisfies_placement({"retry_node": "other"}, NODE)


def test_a_text_is_one_comparison_without_a_limit() -> None:
    assert needs("memory_gb >= 32") == {"where": [["memory_gb", ">=", 32]]}
    assert needs(PlacementConstraints()) == {"max_parallel": 1}
    assert needs_of(None) == needs_of({"max_parallel_per_node": None}) == ""


def test_what_means_the_same_is_the_same_lane() -> None:
    said = PlacementConstraints(
        requires_executors=["rest", "docker"], where=["b == 1", "a > 2"], labels_all=["x"], forbidden_nodes=["n", "m"]
    )
    other = {
        "requires_executors": ["docker_executor", "rest"],
        "requires_capabilities": {"labels": ["x"], "a": {">": 2}, "b": 1},
        "forbidden_nodes": ["m", "n", "m"],
    }
    assert needs_of(said) == needs_of(other)


@pytest.mark.parametrize(
    ("condition", "so"),
    [
        (("spot", "==", False), True),
        (("spot", "==", 0), False),
        (("memory_gb", "==", 32.0), True),
        (("tpu", "!=", 1), True),
        (("tpu", "==", None), False),
        (("disk", "==", None), True),
        (("disk", ">", 1), False),
        (("memory_gb", ">", "1"), False),
        (("spot", "<", 1), False),
        (("python", ">", "3.9"), True),
        (("python", "<", "3.12"), True),
        (("labels", "!=", "red"), False),
    ],
)
def test_a_comparison(condition: tuple[str, str, Any], so: bool) -> None:
    assert holds(HAS, condition) is so


def test_what_is_missing_is_said_of_each_need() -> None:
    given = needs({"where": ["memory_gb >= 64", "tpu == 1"], "labels_any": ["x", "y"], "requires_executors": ["shell"]})
    assert misses(given, NODE) == [
        "it has no executor shell",
        "memory_gb is 32, needed is memory_gb >= 64",
        "tpu is unknown, needed is tpu == 1",
        "it has none of the labels x, y",
    ]
    other = needs({"pool": "q", "allowed_nodes": ["a"], "forbidden_nodes": ["box"]})
    assert misses(other, NODE) == [
        "it is in pool p, needed is q",
        "it is not among the allowed nodes",
        "it is forbidden",
    ]


# ---------------------------------------------------------------- inside of each other


def test_needs_of_what_is_around_add_up() -> None:
    outer = needs_of({"where": "a == 1", "allowed_nodes": ["x", "y"], "max_parallel_per_node": 4, "pool": "p"})
    inner = needs_of({"where": "b == 1", "allowed_nodes": ["y", "z"], "forbidden_nodes": ["w"]})
    assert json.loads(merge(outer, inner)) == {
        "where": [["a", "==", 1], ["b", "==", 1]],
        "allowed": ["y"],
        "forbidden": ["w"],
        "max_parallel": 1,
        "pool": "p",
    }
    assert merge(outer, "") == merge("", outer) == merge(outer, outer) == outer
    nowhere = json.loads(merge(needs_of({"allowed_nodes": ["a"]}), needs_of({"allowed_nodes": ["b"]})))
    assert nowhere["allowed"] == []
    assert misses(nowhere, NODE)


def test_where_runs_are_counted_each_function_has_a_lane() -> None:
    assert lane_needs("", "m.f") == {}
    assert lane_needs(needs_of("a == 1"), "m.f") == {"where": [["a", "==", 1]]}
    assert lane_needs(needs_of({}), "m.f") == {"max_parallel": 1, "entrypoint": "m.f"}
    spread = lane_needs(needs_of({"spread": True, "max_parallel_per_node": None}), "m.f")
    assert spread == {"spread": True, "patience_s": 5.0, "entrypoint": "m.f"}


def test_a_wish() -> None:
    wish = needs({"prefers": ["gpu == nvidia", "spot == false"], "patience_s": 60})
    assert wish["patience_s"] == 60
    assert prefers(wish, NODE)
    assert not prefers(wish, NodeDescription("other"))


@pytest.mark.parametrize(
    ("given", "running", "patient", "room"),
    [
        ({"max_parallel": 2}, 0, True, 2),
        ({"max_parallel": 2}, 1, True, 1),
        ({"max_parallel": 2}, 3, True, 0),
        ({"max_parallel": 2}, None, True, 9),
        ({"spread": True}, 0, True, 1),
        ({"spread": True}, 1, True, 0),
        ({"spread": True}, 5, False, 1),
        ({"spread": True, "max_parallel": 5}, 5, False, 0),
    ],
)
def test_how_many_a_node_may_take(given: dict[str, Any], running: int | None, patient: bool, room: int) -> None:
    assert room_on_node(given, running, 9, patient=patient) == room


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    "given",
    [
        *(7, [], {"gpu": "nvidia"}, "gpu", "gpu = nvidia", "== 1", "a == [1]", {"where": [1]}, {"where": "a > "}),
        *({"max_parallel_per_node": 0}, {"max_parallel_per_node": True}, {"max_parallel_per_node": "1"}),
        *({"requires_capabilities": []}, {"requires_capabilities": {"a": {"=": 1}}}, {"requires_capabilities": {1: 1}}),
        *({"allowed_nodes": "box"}, {"forbidden_nodes": [""]}, {"labels_all": "x"}, {"spread": 1}, {"pool": ""}),
        *({"requires_executors": "rest"}, {"prefers": "x == 1", "patience_s": -1}, {"labels_any": ["x"] * 201}),
    ],
)
def test_what_is_no_placement_is_refused(given: Any) -> None:
    with pytest.raises(InputError):
        needs_of(given)
