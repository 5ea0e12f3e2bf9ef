"""Values as they are shown: plain, bounded, masked."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import numpy
import pytest

from aaiclick.orchestration.models import Group, Task
from aaiclick.orchestration.rules.failed import Failed
from aaiclick.orchestration.rules.secrets import Secret
from aaiclick.orchestration.rules.values import encoding
from aaiclick.orchestration.rules.values.annotations import converted, hints_of
from aaiclick.orchestration.rules.values.shown_values import (
    ARGUMENTS_MAX,
    show_arguments,
    show_stored_arguments,
    show_value,
)
from aaiclick.telemetry import masks
from tests.support.annotated import Colour, Model, Order, all_kinds


class Size(msgspec.Struct):
    height: Decimal
    note: str | msgspec.UnsetType = msgspec.UNSET


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Login:
    name: str
    password: str
    pin: int = field(repr=False)


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
        (b"hi", "aGk="),
        (Decimal("9.90"), "9.90"),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (Path("/srv/x"), "/srv/x"),
        (timedelta(days=1, seconds=90), "P1DT90S"),
        (deque([1, 2]), [1, 2]),
        (Order(7, tags=["x"]), {"number": 7, "colour": "red", "tags": ["x"]}),
        (Model(when=date(2026, 1, 2)), {"when": "2026-01-02", "size": 1}),
        (Size(Decimal("1.5")), {"height": "1.5"}),
        (Point(1, 2), [1, 2]),
        (Login("me", "hunter2", 4711), {"name": "me", "password": "***"}),
        (Failed("ValueError", "no", 5), {"type": "ValueError", "message": "no", "task_id": 5}),
        (numpy.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        ([numpy.int64(3), numpy.float32(0.5), numpy.array(7)], [3, 0.5, 7]),
        (numpy.array([float("nan")]), ["nan"]),
        (numpy.datetime64("2026-01-02"), "2026-01-02"),
        (numpy.longdouble(2), "2.0"),
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


GIVEN: dict[str, object] = {
    "day": date(2026, 2, 3),
    "at": datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC),
    "took": timedelta(days=3, microseconds=5),
    "key": UUID(int=7),
    "place": Path("/srv/x"),
    "price": Decimal("9.90"),
    "colour": Colour.BLUE,
    "order": Order(7, Colour.BLUE, ["x"]),
    "orders": {"a": [Order(1)]},
    "model": Model(when=date(2026, 1, 1)),
    "pair": (1, "x"),
    "ids": {1, 2},
    "by_number": {1: "x"},
}


def test_what_is_shown_can_be_given() -> None:
    assert converted(hints_of(all_kinds.function), show_arguments(GIVEN)) == GIVEN


def test_values_of_classes_that_are_not_loaded_are_shown_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = encoding.encode_kwargs({**GIVEN, "size": Size(Decimal("1.5")), "point": Point(1, 2)}, bytes_max=10_000)
    loaded = show_arguments(encoding.decode_kwargs(text))
    monkeypatch.setattr(encoding, "_is_loaded", lambda kind, payload: False)
    assert show_arguments(encoding.decode_kwargs(text, importing=False)) == loaded


def test_arguments_of_a_task_name_what_it_waits_for() -> None:
    before = Task("statistics.mean", {"data": [1]})
    with Group("rows") as rows:
        Task("statistics.mean", {"data": [2]})
    made = Task("a.b", {"x": [before, 5], "rows": rows, "order": Order(7), "token": "t"})
    assert show_stored_arguments(made.kwargs_json) == {
        "x": [{"task_id": str(before.id)}, 5],
        "rows": {"group_id": str(rows.id)},
        "order": {"number": 7, "colour": "red", "tags": []},
        "token": "***",
    }
