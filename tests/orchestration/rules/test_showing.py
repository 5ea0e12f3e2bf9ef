"""Values as they are shown: plain, bounded, masked."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from enum import Enum
from typing import Any

import pytest

from aaiclick.orchestration.rules.secrets import Secret
from aaiclick.orchestration.rules.showing import ARGUMENTS_MAX, show_arguments, show_value
from aaiclick.telemetry import masks


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        ([1, 2.5, "x"], [1, 2.5, "x"]),
        ({"a": (1, 2)}, {"a": [1, 2]}),
        (float("nan"), "nan"),
        (2**60, str(2**60)),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (Colour.RED, "red"),
        (b"x", "b'x'"),
        ("a\x00\ud800", "a\\x00\\ud800"),
        ({"password": "hunter2"}, {"password": "***"}),
        ("postgresql://u:hunter2@db/x", "postgresql://u:***@db/x"),
    ],
)
def test_values_are_plain_json(value: Any, expected: Any) -> None:
    found = show_value(value)
    assert (found.value, found.complete) == (expected, True)
    assert len(json.dumps(found.value, ensure_ascii=False)) == found.size


def test_what_is_large_is_cut_and_says_so() -> None:
    found = show_value(["x" * 100] * 100, 50)
    assert (len(found.value), found.complete) == (50, False)
    assert found.size >= 50
    assert show_value(range, 10).complete is False


def test_what_is_not_shown_is_not_looked_at() -> None:
    class Counted(list[int]):
        looked = 0

        def __iter__(self) -> Any:
            for item in super().__iter__():
                Counted.looked += 1
                yield item

    show_value(Counted(range(1_000_000)), 100)
    assert Counted.looked < 200


def test_what_is_deep_ends() -> None:
    value: list[Any] = []
    for _ in range(10_000):
        value = [value]
    assert show_value(value).complete


def test_arguments_are_short_and_without_secrets() -> None:
    masks.remember(["canary-of-arguments"])
    try:
        found = show_arguments(
            {"x": 1, "key": "canary-of-arguments", "token": "t", "s": Secret("env:S"), "y": "z" * 999}
        )
    finally:
        masks.forget_all()
    assert (found["x"], found["key"], found["token"], found["s"]) == (1, "***", "***", "Secret('env:S')")
    assert len(found["y"]) < 600
    assert len(show_arguments({f"a{number}": 1 for number in range(1000)})) == ARGUMENTS_MAX + 1
