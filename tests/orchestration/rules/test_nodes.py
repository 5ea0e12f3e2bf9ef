"""What may be said of a node, and when it is healthy, stale or dead."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.nodes import (
    NodeStatus,
    check_capabilities,
    check_executors,
    read_capability,
    status_of,
    with_labels,
)

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ago_s", "status"),
    [(0, NodeStatus.HEALTHY), (15, NodeStatus.HEALTHY), (16, NodeStatus.STALE), (40, NodeStatus.STALE)],
)
def test_a_node_is_stale_when_half_of_its_session_has_passed_without_a_heartbeat(ago_s: int, status: str) -> None:
    beat = NOW - timedelta(seconds=ago_s)
    assert status_of(NOW, beat, beat + timedelta(seconds=30)) == status


def test_a_node_without_a_session_is_dead() -> None:
    assert status_of(NOW, None, None) is NodeStatus.DEAD


def test_capabilities_are_plain_data() -> None:
    given = {"gpu": None, "memory_gb": 1.5, "labels": ("a", "b"), "fast": True}
    assert check_capabilities(given) == {"gpu": None, "memory_gb": 1.5, "labels": ["a", "b"], "fast": True}


@pytest.mark.parametrize(
    "given",
    [
        *(None, [], {1: 2}, {"": 1}, {"a": {}}, {"a": [[1]]}, {"a": float("nan")}, {"a": float("inf")}),
        *({"a": "\0"}, {"a": b"x"}, {str(number): 1 for number in range(101)}, {"a": list(range(101))}),
    ],
)
def test_what_is_no_capability_is_refused(given: Any) -> None:
    with pytest.raises(InputError, match=r"capabilit"):
        check_capabilities(given)


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        *(("a=1", 1), ("a=1.5", 1.5), ("a=nvidia", "nvidia"), ('a=["x","y"]', ["x", "y"]), ("a=null", None)),
        *((" a =b=c ", "b=c"), ("a=true", True), ("a=NaN", "NaN"), ('a="7"', "7")),
    ],
)
def test_a_capability_is_typed_as_name_and_value(typed: str, value: object) -> None:
    assert read_capability(typed) == ("a", value)


@pytest.mark.parametrize("typed", ["a", "=1", ""])
def test_a_capability_without_a_name_or_a_value_is_refused(typed: str) -> None:
    with pytest.raises(InputError, match="name=value"):
        read_capability(typed)


def test_labels_are_added_once() -> None:
    assert with_labels({"labels": ["a"]}, ["b", "a", "b"]) == {"labels": ["a", "b"]}
    assert with_labels({"labels": "a", "x": 1}, []) == {"labels": ["a"], "x": 1}
    assert with_labels({"labels": None}, ["a"]) == {"labels": ["a"]}


def test_executors_have_a_longer_name_too() -> None:
    assert check_executors(("rest_executor", "shell", "rest")) == ["rest", "shell"]
    for wrong in ("rest", None, [1], [""]):
        with pytest.raises(InputError, match="executor"):
            check_executors(wrong)
