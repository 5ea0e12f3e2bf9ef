"""What JSON cannot say travels all the same, exactly."""

from __future__ import annotations

import json
import math
import struct
from collections import defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aaiclick.errors import ValueNotPortable
from aaiclick.orchestration.rules.secrets import Secret
from aaiclick.orchestration.rules.values.encoding import decode_kwargs, decode_value, encode_kwargs, encode_value
from tests.support.travelling import SPECIAL, Colour, Config, Frozen, Place, Point, Right, same

MB = 1_000_000
MORE = [
    Decimal("NaN"),
    Decimal("sNaN123"),
    Decimal("-Infinity"),
    Fraction(-1, 3**500),
    Path("/srv/ä b"),
    Path("\udcff/x"),
    PurePosixPath("a/../b"),
    PureWindowsPath(r"C:\x"),
]


def there_and_back(value: object) -> Any:
    return decode_value(encode_value(value, bytes_max=MB))


@pytest.mark.parametrize("value", [*SPECIAL, *MORE], ids=lambda value: type(value).__name__)
def test_a_value_comes_back_as_it_was(value: object) -> None:
    for each in (value, [value], {"k": (value,)}, {1: value}):
        text = encode_value(each, bytes_max=MB)
        assert same(decode_value(text), each)
        assert text.encode()
        assert "\0" not in text
        json.loads(text, parse_constant=lambda constant: pytest.fail(constant))
        assert encode_value(decode_value(text), bytes_max=MB) == text
    assert same(decode_kwargs(encode_kwargs({"x": value}, bytes_max=MB))["x"], value)


def test_all_bits_of_a_nan_are_kept() -> None:
    odd = struct.unpack(">d", bytes.fromhex("fff8000000000abc"))[0]
    assert struct.pack(">d", there_and_back([odd])[0]).hex() == "fff8000000000abc"
    assert math.isnan(there_and_back(math.nan))


def test_a_deque_keeps_its_room() -> None:
    assert there_and_back(deque([1], maxlen=3)).maxlen == 3
    assert there_and_back(deque([1])).maxlen is None


def test_a_defaultdict_keeps_its_defaults_or_is_refused() -> None:
    came = there_and_back(defaultdict(list))
    came["new"].append(1)
    assert came == {"new": [1]}
    with pytest.raises(ValueNotPortable, match="the function for its defaults would be lost"):
        encode_value(defaultdict(lambda: 1), bytes_max=MB)


@pytest.mark.parametrize("wrap", [lambda s: deque([s]), lambda s: Config(tags=[s]), lambda s: defaultdict(list, a=s)])
def test_a_secret_is_only_where_it_is_found(wrap: Any) -> None:
    with pytest.raises(ValueNotPortable, match="would not be found"):
        encode_value(wrap(Secret("env:NAME")), bytes_max=MB)


anything = st.recursive(
    st.one_of(
        st.none(),
        st.floats(),
        st.integers(),
        st.text(st.characters(codec=None)),
        st.text(st.sampled_from("\0a\ud800\udc00\ue000\uffff\U0001f389")),
        st.binary(max_size=20),
        st.decimals(),
        st.fractions(),
        st.complex_numbers(allow_nan=False),
        st.sampled_from([*Colour, Right.READ | Right.WRITE]),
        st.builds(Frozen, st.integers(), st.lists(st.integers(), max_size=3).map(tuple)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.lists(inner, max_size=4).map(deque),
        st.dictionaries(st.text(st.characters(codec=None), max_size=5), inner, max_size=4),
        st.builds(Config, inner, st.lists(st.text(max_size=3), max_size=2)),
        st.tuples(inner, inner).map(Point._make),
        st.text(max_size=3).map(lambda name: Place(name, Point(1, 2))),
    ),
    max_leaves=15,
)


@settings(max_examples=200, deadline=None)
@given(anything)
def test_whatever_is_put_together_comes_back_as_it_was(value: object) -> None:
    text = encode_value(value, bytes_max=MB)
    assert same(decode_value(text), value)
    assert "\0" not in text
    text.encode()


HOSTILE: list[tuple[object, list[object]]] = [
    ("x", ["str"]),
    ("zz", ["float"]),
    ([1], ["pairs"]),
    ("nan", ["uuid"]),
    (["0x1", "0x0"], ["fraction"]),
    (["x"], ["range"]),
    ("x", ["path", "eval"]),
    ([], ["defaultdict", "eval"]),
    ([[1]], ["set"]),
    ("AA", ["complex"]),
    (1, ["timedelta"]),
    ("a" * 5, ["bytes"]),
    ({}, ["dataclass", "os:system"]),
    ({}, ["dataclass", "subprocess:Popen"]),
    ({}, ["dataclass", "tests.support.travelling:dataclass"]),
    ({}, ["dataclass", "tests.support.travelling:enum.Enum"]),
    ({}, ["dataclass", "tests.support.travelling:msgspec.Struct"]),
    ({}, ["dataclass", "tests.support.travelling:Colour"]),
    ({}, ["dataclass", "tests.support.travelling:Config"]),
    ({}, ["dataclass", "builtins:object"]),
    ({}, ["dataclass", "no.such.module:X"]),
    ({}, ["dataclass", ""]),
    ({}, ["dataclass", 7]),
    ({}, ["dataclass"]),
    ("x", ["enum", "tests.support.travelling:Config"]),
    ("PURPLE", ["enum", "tests.support.travelling:Colour"]),
    ("RED", ["enum", "tests.support.travelling:Colour", 2]),
    (64, ["flag", "tests.support.travelling:Right", ["SIX"]]),
    (3, ["flag", "tests.support.travelling:Right", ["READ"]]),
    ([1], ["namedtuple", "tests.support.travelling:Point", ["x", "y"]]),
    ([1, 2], ["namedtuple", "tests.support.travelling:Point", ["x", "z"]]),
    ([1], ["namedtuple", "builtins:tuple", []]),
    ({}, ["struct", "tests.support.travelling:Struct"]),
    ({}, ["model", "tests.support.travelling:Model", {"set": []}]),
    ({"a": 1}, ["model", "tests.support.travelling:Model", {}]),
    ("AAAA", ["array", "|O", [1], "C"]),
    ("AAAA", ["array", [["a", "|O"]], [1], "C"]),
    ("AAAA", ["array", "<f8", [100], "C"]),
    ("AAAA", ["array", "<f8", [-1], "C"]),
    ("AAAA", ["scalar", "|O"]),
    ("", ["scalar", "<f8"]),
    (1, ["type", "nobody"]),
    (1, ["type", "nobody", "os:system"]),
    (1, ["type", "nobody", "no.such.module:X"]),
]


@pytest.mark.parametrize(("value", "mark"), HOSTILE, ids=[str(mark)[:60] for _, mark in HOSTILE])
def test_a_stored_text_that_says_what_cannot_be_is_refused(value: object, mark: list[object]) -> None:
    text = json.dumps({"object_type": "pyobj", "value": value, "marks": [[[], *mark]]})
    with pytest.raises(ValueNotPortable, match=r"^value: "):
        decode_value(text)
