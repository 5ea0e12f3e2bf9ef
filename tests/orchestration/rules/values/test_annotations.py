"""JSON from outside becomes what annotations promise, or is refused by name."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import pytest

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.values.annotations import converted, hint_of, hints_of, spec_of
from tests.support.annotated import Colour, Model, Order, all_kinds, unresolved

HINTS = hints_of(all_kinds.function)

GOOD: list[tuple[str, object, object]] = [
    ("day", "2026-02-03", date(2026, 2, 3)),
    ("at", "2026-02-03T04:05:06Z", datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)),
    ("at", "2026-02-03T04:05:06", datetime(2026, 2, 3, 4, 5, 6)),  # noqa: DTZ001 a naive time stays naive
    ("at", None, None),
    ("took", "PT90S", timedelta(seconds=90)),
    ("key", "00000000-0000-0000-0000-000000000007", UUID(int=7)),
    ("place", "/srv/x", Path("/srv/x")),
    ("price", "9.90", Decimal("9.90")),
    ("colour", "blue", Colour.BLUE),
    ("order", {"number": 7}, Order(7)),
    ("order", {"number": 7, "colour": "blue", "tags": ["x"]}, Order(7, Colour.BLUE, ["x"])),
    ("orders", {"a": [{"number": 1}]}, {"a": [Order(1)]}),
    ("model", {"when": "2026-01-01"}, Model(when=date(2026, 1, 1))),
    ("row", {"id": 1, "name": "x"}, {"id": 1, "name": "x"}),
    ("mode", "slow", "slow"),
    ("ratio", 3, 3.0),
    ("count", 2**70, 2**70),
    ("flag", True, True),
    ("pair", [1, "x"], (1, "x")),
    ("ids", [1, 2], {1, 2}),
    ("by_number", {"1": "x"}, {1: "x"}),
    ("loose", "2026-01-01", date(2026, 1, 1)),
    ("loose", "soon", "soon"),
    ("anything", {"object_type": "view"}, {"object_type": "view"}),
    ("bare", [1], [1]),
    ("elsewhere", 1, 1),
]
BAD: list[tuple[str, object, str]] = [
    ("day", "tomorrow", r"kwargs\.day"),
    ("day", 5, "expected date, got int"),
    ("colour", "green", "green"),
    ("order", {"colour": "red"}, "missing required field number"),
    ("order", {"number": "7"}, r"kwargs\.order\.number: '7' is not accepted: expected int, got str"),
    ("pair", [1, 2], r"kwargs\.pair\[1\]: 2 is not"),
    ("by_number", {"x": "y"}, r"a key of kwargs\.by_number: \{'x': 'y'\} is not"),
    ("orders", {"a": [{"number": 1}, {"number": 2, "tags": [3]}]}, r"kwargs\.orders\[\.\.\.\]\[1\]\.tags\[0\]: \{'a'"),
    ("model", {"when": "x"}, r"kwargs\.model: \{'when': 'x'\} is not accepted: when: Input should be a valid date"),
    ("model", {}, "when: Field required"),
    ("model", 3, "input should be a valid dictionary"),
    ("row", {"id": 1}, "name"),
    ("mode", "medium", "medium"),
    ("count", 1.5, "expected int, got float"),
    ("count", True, "expected int, got bool"),
    ("count", "1", "expected int, got str"),
    ("flag", 1, r"kwargs\.flag"),
    ("ratio", "1.5", "expected float, got str"),
    ("pair", [1], r"kwargs\.pair"),
    ("place", 5, r"kwargs\.place"),
    ("loose", 5, r"kwargs\.loose"),
]


@pytest.mark.parametrize(("name", "given", "expected"), GOOD, ids=[f"{name} {given}"[:40] for name, given, _ in GOOD])
def test_json_becomes_what_was_promised(name: str, given: object, expected: object) -> None:
    found = converted(HINTS, {name: given})[name]
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(("name", "given", "said"), BAD, ids=[f"{name} {given}"[:40] for name, given, _ in BAD])
def test_what_cannot_be_that_is_refused_by_name(name: str, given: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        converted(HINTS, {name: given})


def test_what_cannot_be_resolved_is_left_as_it_came() -> None:
    hints = hints_of(unresolved.function)
    assert converted(hints, {"x": "text", "y": "text"}) == {"x": "text", "y": "text"}
    assert hints_of(len) == {}


@pytest.mark.parametrize(
    "hint",
    [int, str, bool, float, None, Any, list[int], dict[str, list[int | None]], Literal["a", 1], int | str, list],
)
def test_plain_annotations_travel_as_json(hint: Any) -> None:
    spec = spec_of(hint)
    assert spec is not None
    assert spec_of(hint_of(spec)) == spec


@pytest.mark.parametrize("hint", [date, Order, Colour, set[int], dict[int, str], list[Order], int | date, Path, "int"])
def test_others_do_not(hint: Any) -> None:
    assert spec_of(hint) is None
