"""Types that users have taught to travel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aaiclick.errors import InputError, ValueNotPortable
from aaiclick.orchestration import register_type
from aaiclick.orchestration.rules.values import registry
from aaiclick.orchestration.rules.values.encoding import decode_kwargs, decode_value, encode_kwargs, encode_value
from aaiclick.orchestration.rules.values.plain_kinds import Sealed
from tests.support.travelling import Colour, Frozen, Money

MB = 1_000_000


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_by_type", {})
    monkeypatch.setattr(registry, "_by_name", {})


def register(**changes: Any) -> None:
    given: dict[str, Any] = {
        "name": "money",
        "encode": lambda money: (money.amount, money.currency),
        "decode": lambda parts: Money(*parts),
    }
    register_type(Money, **given | changes)


def encoded(value: object) -> str:
    return encode_value(value, bytes_max=MB)


def test_a_registered_type_travels_anywhere() -> None:
    register()
    value = {"price": Money(5, "EUR"), Money(1, "x"): {Money(2, "y")}}
    assert decode_value(encoded(value)) == value


def test_what_stands_for_a_value_may_be_of_a_class_too() -> None:
    register(encode=lambda money: Frozen(money.amount, (1,)), decode=lambda frozen: Money(frozen.x, "EUR"))
    assert decode_value(encoded([Money(3, "EUR")])) == [Money(3, "EUR")]


def test_a_registered_type_comes_before_all_else() -> None:
    register_type(Frozen, name="frozen", encode=lambda value: value.x, decode=Frozen)
    assert '"value":7' in encoded(Frozen(7))
    assert decode_value(encoded(Frozen(7))) == Frozen(7)


def test_a_subclass_is_not_what_was_registered() -> None:
    register()

    class More(Money):
        pass

    with pytest.raises(ValueNotPortable, match="More is not a plain type"):
        encoded(More(1, "x"))


def test_an_unknown_name_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    register()
    text = encoded([Money(5, "EUR")])
    monkeypatch.setattr(registry, "_by_name", {})
    with pytest.raises(ValueNotPortable, match=r"value\[0\]: .* no type is registered under the name 'money' here"):
        decode_value(text)


def test_what_the_functions_raise_is_told_with_the_place() -> None:
    register(encode=lambda money: 1 / 0, decode=lambda parts: 1 / 0)
    with pytest.raises(ValueNotPortable, match=r"value\.x: .* encode of money raised ZeroDivisionError"):
        encoded({"x": Money(1, "x")})
    register(decode=lambda parts: 1 / 0)
    with pytest.raises(ValueNotPortable, match=r"value\.x: .* decode of money raised ZeroDivisionError"):
        decode_value(encoded({"x": Money(1, "x")}))


def test_an_encoding_that_never_ends_is_refused() -> None:
    register(encode=lambda money: [money])
    with pytest.raises(ValueNotPortable, match=r"levels deep|contains itself"):
        encoded(Money(1, "x"))
    register(encode=lambda money: money)
    with pytest.raises(ValueNotPortable, match=r"levels deep|contains itself"):
        encoded([Money(1, "x")])


def test_a_name_is_of_one_type() -> None:
    register()
    register()  # as when a module is loaded again
    with pytest.raises(InputError, match="Money"):
        register_type(Colour, name="money", encode=str, decode=Colour)
    register(name="cash")
    assert '"cash"' in encoded(Money(1, "x"))


@pytest.mark.parametrize("changes", [{"encode": None}, {"decode": 1}, {"name": ""}, {"name": "a\0"}, {"name": 3}])
def test_what_cannot_be_registered_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        register(**changes)


@pytest.mark.parametrize("cls", [int, list, "Money", None])
def test_only_classes_of_others_are_registered(cls: Any) -> None:
    with pytest.raises(InputError):
        register_type(cls, encode=str, decode=str)


MODULE = """
import enum
from aaiclick.orchestration import register_type

class Money:
    def __init__(self, amount):
        self.amount = amount

class Colour(enum.Enum):
    RED = 1

register_type(Money, name="money", encode=lambda money: money.amount, decode=Money)
"""


def ran(lines: str, where: Path) -> str:
    done = subprocess.run([sys.executable, "-c", lines], cwd=where, capture_output=True, text=True, check=True)
    return done.stdout


def test_another_process_imports_the_module_of_the_class(tmp_path: Path) -> None:
    (tmp_path / "till.py").write_text(MODULE)
    encode = "import till; from aaiclick.orchestration.rules.values.encoding import *; "
    encode += "print(encode_kwargs({'x': till.Money(5), 'y': till.Colour.RED}, bytes_max=9999))"
    text = ran(encode, tmp_path).strip()
    decode = f"from aaiclick.orchestration.rules.values.encoding import *; found = decode_kwargs({text!r}); "
    decode += "print(found['x'].amount, found['y'])"
    assert ran(decode, tmp_path) == "5 Colour.RED\n"


def test_where_nothing_may_be_imported_a_value_stays_sealed_and_is_written_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "till_sealed.py").write_text(MODULE)
    encode = "import till_sealed as till; from aaiclick.orchestration.rules.values.encoding import *; "
    encode += "print(encode_kwargs({'x': [till.Money(5)], 'y': till.Colour.RED}, bytes_max=9999))"
    text = ran(encode, tmp_path).strip()
    found = decode_kwargs(text, importing=False)
    assert isinstance(found["y"], Sealed)
    assert repr(found["y"]) == "<till_sealed:Colour: 'RED'>"
    assert encode_kwargs(found, bytes_max=MB) == text
    assert "till_sealed" not in sys.modules
    assert decode_kwargs(encode_kwargs({"y": Colour.RED}, bytes_max=MB), importing=False) == {"y": Colour.RED}
