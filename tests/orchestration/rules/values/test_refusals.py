"""What cannot travel is refused, with the place named and a way out."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from enum import Enum
from typing import Any

import pytest

from aaiclick.errors import ValueNotPortable
from aaiclick.orchestration.rules.values.encoding import encode_kwargs, encode_value

MB = 1_000_000


def refusal(value: object, *, path: str = "value") -> str:
    with pytest.raises(ValueNotPortable) as caught:
        encode_value(value, path=path, bytes_max=MB)
    return str(caught.value)


class Odds(OrderedDict[str, object]):
    pass


def local_enum() -> Enum:
    return Enum("Local", "A", qualname="local_enum.<locals>.Local").A  # type: ignore[attr-defined]


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
    ("lock", threading.Lock(), "inside the task"),
    ("rlock", threading.RLock(), "inside the task"),
    ("generator", (number for number in [1]), "list"),
    ("map", map(str, [1]), "list"),
    ("lambda", lambda: 1, "import path"),
    ("function", refusal, "import path"),
    ("builtin", len, "import path"),
    ("class", Config, "import path"),
    ("object", object(), "plain values"),
    ("exception", ValueError("x"), "text"),
    ("memoryview", memoryview(b"x"), "bytes"),
    ("str subclass", Text("x"), "plain str"),
    ("dict subclass", Odds(a=1), "plain dict"),
    ("local enum", local_enum(), "top level of a module"),
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


def test_a_name_of_an_argument_is_held_to_the_rule_of_texts() -> None:
    for key in ("a\0", "\ud800"):
        with pytest.raises(ValueNotPortable):
            encode_kwargs({key: 1}, bytes_max=MB)


def test_a_key_and_a_part_of_a_set_are_named() -> None:
    assert refusal({"a": {Text("x"): 1}}).startswith("value.a (a key): ")
    assert refusal({(1, Text("x")): 1}).startswith("value (a key)[1]: ")
    assert refusal({"s": {Text("x"), 1}}).startswith("value.s{…}: ")


def test_a_value_is_shown_short_and_secrets_are_not() -> None:
    assert len(refusal([Text("x" * MB)])) < 250
    assert "hunter2" not in refusal({"db_password": Text("hunter2")})
    assert "hunter2" not in refusal(Text("postgresql://me:hunter2@host/db"))
    assert "hunter2" not in refusal(Odds(password="hunter2"))
    assert "\x1b" not in refusal(Text("\x1b[31m"))
