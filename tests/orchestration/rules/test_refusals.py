"""What cannot travel is refused, with the place named and a way out."""

from __future__ import annotations

import math
import os
import threading
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any

import pytest

from aaiclick.errors import ValueNotPortable
from aaiclick.orchestration.rules.values import DEPTH_MAX, decode_value, encode_kwargs, encode_value

MB = 1_000_000


def refusal(value: object, *, path: str = "value") -> str:
    with pytest.raises(ValueNotPortable) as caught:
        encode_value(value, path=path, bytes_max=MB)
    return str(caught.value)


def there_and_back(value: object) -> object:
    return decode_value(encode_value(value, bytes_max=MB))


Point = namedtuple("Point", "x y")


class Colour(Enum):
    RED = 1


class Level(IntEnum):
    LOW = 1


class Text(str):
    __slots__ = ()


@dataclass
class Config:
    rate: float = 0.5


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class Odd(tzinfo):
    def utcoffset(self, moment: datetime | None) -> timedelta:
        return timedelta(0)

    dst = utcoffset

    def tzname(self, moment: datetime | None) -> str:
        return "odd"


async def coroutine() -> None: ...


REFUSED: list[tuple[str, object, str]] = [
    ("nan", math.nan, "NaN"),
    ("inf", math.inf, "infinity"),
    ("-inf", -math.inf, "infinity"),
    ("decimal nan", Decimal("NaN"), "NaN"),
    ("decimal snan", Decimal("sNaN"), "NaN"),
    ("decimal inf", Decimal("-Infinity"), "infinity"),
    ("nul", "a\0b", "NUL"),
    ("surrogate", "\ud800", "surrogate"),
    ("surrogate pair", "\ud83d\ude00", "surrogate"),
    ("lock", threading.Lock(), "inside the task"),
    ("rlock", threading.RLock(), "inside the task"),
    ("generator", (number for number in [1]), "list"),
    ("range", range(3), "list"),
    ("map", map(str, [1]), "list"),
    ("lambda", lambda: 1, "import path"),
    ("function", refusal, "import path"),
    ("builtin", len, "import path"),
    ("class", Config, "import path"),
    ("object", object(), "plain values"),
    ("dataclass", Config(), "asdict"),
    ("exception", ValueError("x"), "text"),
    ("bytearray", bytearray(b"x"), "bytes"),
    ("memoryview", memoryview(b"x"), "bytes"),
    ("complex", 1j, "plain values"),
    ("enum", Colour.RED, "its value"),
    ("int enum", Level.LOW, "its value"),
    ("namedtuple", Point(1, 2), "plain tuple"),
    ("str subclass", Text("x"), "plain str"),
    ("defaultdict", defaultdict(list), "plain dict"),
    ("ordered dict", OrderedDict(a=1), "plain dict"),
    ("odd zone", datetime(2024, 1, 1, tzinfo=Odd()), "ZoneInfo"),
    ("odd zone name", datetime(2024, 1, 1, tzinfo=timezone(timedelta(0), "\ud800")), "ZoneInfo"),
    ("repr raises", Silent(), "<Silent"),
    ("ellipsis", ..., "plain values"),
]


@pytest.mark.parametrize(("value", "said"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_cannot_travel_is_refused_wherever_it_is(value: Any, said: str) -> None:
    assert said in refusal(value)
    assert said in refusal([1, value]).replace("value[1]: ", "", 1)
    assert refusal({"rates": (0, [1, 2, 3, value])}, path="kwargs.config").startswith("kwargs.config.rates[1][3]: ")
    assert refusal({"a b": value}).startswith("value['a b']: ")
    assert refusal({7: {"x": value}}).startswith("value[7].x: ")
    with pytest.raises(ValueNotPortable, match=r"^kwargs\.n\.x: "):
        encode_kwargs({"ok": 1, "n": {"x": value}}, bytes_max=MB)


def test_a_file_and_a_coroutine_are_refused() -> None:
    with open(os.devnull) as file:
        assert "its path" in refusal(file)
    waiting = coroutine()
    assert "Await" in refusal(waiting)
    waiting.close()


@pytest.mark.parametrize("key", ["a\0", "\ud800"])
def test_keys_are_held_to_the_rule_of_texts(key: str) -> None:
    assert refusal({"a": {key: 1}}).startswith("value.a: ")
    assert refusal({key: 1, 2: 3}).startswith("value (a key): ")
    assert refusal({(1, key): 1}).startswith("value (a key)[1]: ")
    with pytest.raises(ValueNotPortable):
        encode_kwargs({key: 1}, bytes_max=MB)


def test_a_part_of_a_set_is_named() -> None:
    assert refusal({"s": {math.inf, 1}}).startswith("value.s{…}: ")
    assert refusal({Level.LOW}).startswith("value{…}: ")


def test_a_value_is_shown_short_and_secrets_are_not() -> None:
    assert len(refusal(["x\0" * MB])) < 250
    assert "hunter2" not in refusal({"db_password": "hunter2\0"})
    assert "hunter2" not in refusal("postgresql://me:hunter2@host/db\0")
    assert "hunter2" not in refusal(OrderedDict(password="hunter2"))
    assert "\x1b" not in refusal("\x1b[31m\0")


def cyclic_list() -> object:
    value: list[object] = []
    value.append(value)
    return value


def cyclic_dict() -> object:
    value: dict[object, object] = {"a": 1}
    value["self"] = [value]
    return value


def cyclic_pairs() -> object:
    value: dict[object, object] = {1: 1}
    value[2] = (value,)
    return value


@pytest.mark.parametrize(
    ("make", "path"),
    [(cyclic_list, "value[0]: "), (cyclic_dict, "value.self[0]: "), (cyclic_pairs, "value[2][0]: ")],
)
def test_a_value_that_contains_itself_is_refused(make: Any, path: str) -> None:
    message = refusal(make())
    assert "contains itself" in message
    assert message.startswith(path)


def nested(depth: int, wrap: Any) -> object:
    value: object = 1
    for _ in range(depth):
        value = wrap(value)
    return value


WRAPS = [lambda v: [v], lambda v: (v,), lambda v: {"k": v}, lambda v: {1: v}]


@pytest.mark.parametrize("wrap", WRAPS)
def test_very_deep_values_are_refused_without_a_recursion_error(wrap: Any) -> None:
    message = refusal(nested(100_000, wrap))
    assert f"more than {DEPTH_MAX} levels" in message
    assert len(message) < 500


@pytest.mark.parametrize("wrap", WRAPS)
def test_the_allowed_depth_works(wrap: Any) -> None:
    value = nested(DEPTH_MAX, wrap)
    assert there_and_back(value) == value
    assert "levels" in refusal(wrap(value))


def test_the_allowed_depth_works_on_a_deep_stack() -> None:
    def further(calls: int) -> object:
        return there_and_back(nested(DEPTH_MAX, tuple_of)) if calls == 0 else further(calls - 1)

    def tuple_of(value: object) -> object:
        return (value,)

    assert further(400) == nested(DEPTH_MAX, tuple_of)


def test_empty_containers_at_the_limit_are_refused_cleanly() -> None:
    empties: list[object] = [[], {}, (), set()]
    for value in empties:
        for _ in range(DEPTH_MAX):
            value = [value]
        assert "levels" in refusal(value)
