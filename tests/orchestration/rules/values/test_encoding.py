"""Plain values travel exactly, or are refused with the place named."""

from __future__ import annotations

import json
import math
import sys
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aaiclick.errors import ValueNotPortable, ValueTooLarge
from aaiclick.orchestration.rules.values.encoding import (
    DEPTH_MAX,
    Reference,
    decode_kwargs,
    decode_value,
    encode_kwargs,
    encode_value,
)
from aaiclick.orchestration.rules.values.reference_marks import marks_of

MB = 1_000_000


def there_and_back(value: object) -> Any:
    return decode_value(encode_value(value, bytes_max=MB))


def same(one: Any, other: Any) -> bool:
    """Equal, with equal types all the way down, and what == does not see: zero's sign, zones and folds."""
    if type(one) is not type(other):
        return False
    if type(one) is dict:
        return len(one) == len(other) and all(
            same(k1, k2) and same(v1, v2) for (k1, v1), (k2, v2) in zip(one.items(), other.items(), strict=True)
        )
    if type(one) in (list, tuple):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    if type(one) in (set, frozenset):
        return one == other and sorted(str(type(v)) for v in one) == sorted(str(type(v)) for v in other)
    if type(one) is float:
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return one == other and (type(one) is int or repr(one) == repr(other))


# ---------------------------------------------------------------- exact round trips

SAMPLES: list[object] = [
    None,
    True,
    False,
    0,
    -1,
    2**63,
    -(2**64) - 1,
    10**600,
    10**5000,
    -(10**5000),
    0.1,
    -0.0,
    1e16,
    5e-324,
    1.7976931348623157e308,
    1.0,
    "",
    "grüße 🎉 \u202e <script> \x1b[31m \n\t\x7f",
    'quotes " and \\ and \\u0000',
    b"",
    bytes(range(256)),
    Decimal("1.10"),
    Decimal("-0"),
    Decimal("1E+400"),
    UUID(int=7),
    date(1, 1, 1),
    date.max,
    datetime(2024, 10, 27, 2, 30),  # noqa: DTZ001 a naive time stays naive
    datetime(2024, 10, 27, 2, 30, fold=1),  # noqa: DTZ001
    datetime(2024, 10, 27, 2, 30, tzinfo=UTC),
    datetime(2024, 10, 27, 2, 30, tzinfo=timezone(timedelta(hours=5, minutes=45, seconds=1, microseconds=2))),
    datetime(2024, 10, 27, 2, 30, tzinfo=timezone(timedelta(microseconds=1))),
    datetime(2024, 10, 27, 2, 30, tzinfo=timezone(-timedelta(microseconds=1)), fold=1),
    datetime(2024, 10, 27, 2, 30, tzinfo=timezone(timedelta(hours=1), "CET")),
    datetime(2024, 10, 27, 2, 30, tzinfo=timezone(timedelta(0), "Zulu")),
    datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Paris")),
    datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Paris"), fold=1),
    datetime(1, 1, 1, tzinfo=ZoneInfo("Asia/Tokyo")),
    datetime.max.replace(tzinfo=ZoneInfo("America/New_York")),
    time(1, 2, 3, 4),
    time(1, 2, fold=1, tzinfo=UTC),
    time(1, 2, tzinfo=ZoneInfo("Europe/Paris")),
    timedelta(days=-1, seconds=1, microseconds=1),
    timedelta.max,
    timedelta.min,
    [],
    (),
    {},
    set(),
    frozenset(),
    [1, [2, [3, (4, {5, 6})]]],
    {"a": {"b": (1, "x")}, "": 1, "a b": 2},
    {1: "int", "1": "text", 2.5: "float", None: "none", True + 1: "two", b"k": "bytes"},
    {False: 0, (1, (2, "x")): [1], frozenset({1, 2}): {3}, date(2024, 1, 1): {4: (5,)}},
    {(): ()},
    {"object_type": "pyobj", "value": 1},
    {"object_type": "object", "table": "t1"},
    {"marks": [[[], "tuple"]], "value": [1]},
    [{"object_type": "task", "id": 3}],
    {"set of tuples": {(1, 2), (3, frozenset({4}))}},
]


@pytest.mark.parametrize("value", SAMPLES, ids=lambda value: f"{type(value).__name__}")
def test_a_plain_value_comes_back_as_it_was(value: object) -> None:
    assert same(there_and_back(value), value)
    assert same(decode_kwargs(encode_kwargs({"x": value}, bytes_max=MB))["x"], value)


zones = st.one_of(
    st.none(),
    st.just(UTC),
    st.timedeltas(timedelta(hours=-23, minutes=-59), timedelta(hours=23, minutes=59)).map(timezone),
    st.sampled_from(["Europe/Paris", "America/New_York", "Australia/Lord_Howe", "UTC"]).map(ZoneInfo),
)
hashables = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=2**2040, max_value=2**2060),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    st.binary(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.datetimes(timezones=zones),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.uuids(),
)
keys = st.one_of(hashables, st.tuples(hashables, hashables), st.frozensets(st.integers()))
values = st.recursive(
    st.one_of(hashables, st.sets(hashables, max_size=4), st.frozensets(hashables, max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), inner, max_size=4),
        st.dictionaries(keys, inner, max_size=4),
    ),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(values)
def test_every_plain_value_comes_back_as_it_was(value: object) -> None:
    assert same(there_and_back(value), value)


@settings(max_examples=100, deadline=None)
@given(values)
def test_the_text_is_strict_json_that_every_database_can_hold(value: object) -> None:
    text = encode_value(value, bytes_max=10 * MB)
    assert text.encode()  # no lone surrogate
    assert "\0" not in text

    def refuse(constant: str) -> None:
        pytest.fail(constant)

    json.loads(text, parse_constant=refuse)


def test_none_is_null() -> None:
    assert encode_value(None, bytes_max=MB) == "null"
    assert decode_value("null") is None


def test_marks_are_left_out_when_there_are_none() -> None:
    assert encode_value({"ä": [1]}, bytes_max=MB) == '{"object_type":"pyobj","value":{"ä":[1]}}'


def test_the_same_set_gives_the_same_text() -> None:
    names = [f"name{number}" for number in range(50)]
    assert json.loads(encode_value(set(names), bytes_max=MB))["value"] == sorted(names)


def test_encoding_leaves_the_value_as_it_was() -> None:
    value = {"a": [(1, 2), {3}], 4: b"x"}
    encode_value(value, bytes_max=MB)
    assert same(value, {"a": [(1, 2), {3}], 4: b"x"})


def test_shared_parts_are_fine() -> None:
    part = [1]
    assert there_and_back([part, part, (part,)]) == [[1], [1], ([1],)]


def test_a_lower_limit_on_the_digits_of_ints_is_no_obstacle() -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        assert there_and_back([10**616, 10**630, -(2**2048)]) == [10**616, 10**630, -(2**2048)]
    finally:
        sys.set_int_max_str_digits(before)


# ---------------------------------------------------------------- size


def test_a_value_over_the_limit_is_refused_with_the_way_out() -> None:
    with pytest.raises(ValueTooLarge, match=r"Pass an Object instead, or raise AAICLICK_VALUE_BYTES_MAX"):
        encode_value("x" * 100, bytes_max=100)
    with pytest.raises(ValueTooLarge, match=r"^kwargs takes"):
        encode_kwargs({"a": "x" * 60, "b": "x" * 60}, bytes_max=150)


def test_the_limit_counts_bytes_and_is_itself_allowed() -> None:
    size = len(encode_value("ä" * 10, bytes_max=MB).encode())
    assert encode_value("ä" * 10, bytes_max=size)
    with pytest.raises(ValueTooLarge):
        encode_value("ä" * 10, bytes_max=size - 1)


@settings(max_examples=100, deadline=None)
@given(values)
def test_the_early_estimate_never_refuses_what_fits(value: object) -> None:
    size = len(encode_value(value, bytes_max=10 * MB).encode())
    assert encode_value(value, bytes_max=size)


def test_a_small_value_that_would_explode_is_refused_at_once() -> None:
    value: object = []
    for _ in range(DEPTH_MAX - 1):
        value = [value, value]
    with pytest.raises(ValueTooLarge):
        encode_value(value, bytes_max=10_000)
    with pytest.raises(ValueTooLarge):
        encode_value(["x" * 1000] * 10**6, bytes_max=10_000)
    with pytest.raises(ValueTooLarge):
        encode_value([{"k" * 1000: 1}] * 10**5, bytes_max=10_000)


# ---------------------------------------------------------------- what the caller marks


class Node:
    def __init__(self, kind: str, id: int) -> None:
        self.kind, self.id = kind, id


def mark(value: object) -> tuple[str, object] | None:
    return (value.kind, value.id) if isinstance(value, Node) else None


def test_tasks_are_marked_and_resolved_anywhere() -> None:
    task, group = Node("task", 2**62), Node("group", 7)
    value = {"direct": task, "list": [1, (task, {"g": group})], 5: {"x": task}}
    text = encode_kwargs({"a": task, "b": value, "c": {"task": 1}}, bytes_max=MB, mark=mark)
    found = decode_kwargs(text, lambda kind, payload: f"{kind}:{payload}")
    t, g = f"task:{2**62}", "group:7"
    expected = {"a": t, "b": {"direct": t, "list": [1, (t, {"g": g})], 5: {"x": t}}, "c": {"task": 1}}
    assert found == expected
    seen = [("task", 2**62), ("task", 2**62), ("task", 2**62), ("group", 7), ("task", 2**62)]
    assert list(marks_of(text)) == seen


def test_a_result_may_be_a_marked_thing_itself() -> None:
    text = encode_value(Node("task", 3), bytes_max=MB, mark=mark)
    assert json.loads(text) == {"object_type": "pyobj", "value": None, "marks": [[[], "task", 3]]}
    assert decode_value(text, lambda kind, payload: [kind, payload]) == ["task", 3]
    assert decode_value(text) == Reference("task", 3)
    assert list(marks_of(text)) == [("task", 3)]


def test_a_resolved_value_may_be_anything() -> None:
    text = encode_value((Node("task", 3),), bytes_max=MB, mark=mark)
    assert decode_value(text, lambda kind, payload: {"object_type": "x", "marks": []}) == (
        {"object_type": "x", "marks": []},
    )


def test_a_marked_thing_cannot_be_hashed_where_it_is_resolved() -> None:
    for value in ({Node("task", 1)}, {Node("task", 1): 2}, {(Node("task", 1),): 2}):
        with pytest.raises(ValueNotPortable, match="set or be a key"):
            encode_value(value, bytes_max=MB, mark=mark)


def test_what_the_caller_does_not_know_is_refused() -> None:
    with pytest.raises(ValueNotPortable):
        encode_value([object()], bytes_max=MB, mark=mark)


def test_a_zone_that_is_not_known_here_is_named() -> None:
    text = encode_value(datetime(2024, 1, 1, tzinfo=ZoneInfo("Europe/Paris")), bytes_max=MB)
    with pytest.raises(ValueNotPortable, match="Europe/Nowhere"):
        decode_value(text.replace("Europe/Paris", "Europe/Nowhere"))


def test_ids_of_many_kinds_can_be_keys() -> None:
    key = uuid4()
    assert same(there_and_back({key: {(key, 1): "x"}}), {key: {(key, 1): "x"}})


def test_naming_tasks_weighs_nothing_and_the_rest_does() -> None:
    def mark(value: object) -> tuple[str, object] | None:
        return ("task", 2**62) if value is mark else None

    many: list[object] = [mark] * 500
    assert len(encode_value(many, bytes_max=1_000, mark=mark)) > 1_000
    assert len(encode_kwargs({"x": many, "y": 1}, bytes_max=1_000, mark=mark)) > 1_000
    with pytest.raises(ValueTooLarge):
        encode_value([*many, "x" * 990], bytes_max=1_000, mark=mark)
