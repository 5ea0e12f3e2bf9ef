"""Values of classes come back as they were, or it is said what of the class has changed."""

from __future__ import annotations

import dataclasses
import enum
import functools
from typing import Any

import pytest

from aaiclick.errors import ValueNotPortable
from aaiclick.orchestration.models import Job
from aaiclick.orchestration.rules.values.encoding import decode_value, encode_value
from tests.support import travelling
from tests.support.travelling import (
    Colour,
    Config,
    Derived,
    Frozen,
    Level,
    ListWithFields,
    Loud,
    Model,
    MyDict,
    MyInt,
    MyList,
    Point,
    Right,
    Struct,
    Unfinished,
)

MB = 1_000_000
made: Any = enum.Enum


def encoded(value: object) -> str:
    return encode_value(value, bytes_max=MB)


def refusal_of(text: str) -> str:
    with pytest.raises(ValueNotPortable) as caught:
        decode_value(text)
    return str(caught.value)


def test_members_come_back_as_the_same_members() -> None:
    assert decode_value(encoded([Colour.RED, Colour.SCARLET, Level.HIGH])) == [Colour.RED, Colour.RED, Level.HIGH]
    assert decode_value(encoded(Colour.BOTH)) is Colour.BOTH


def test_a_renamed_member_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    text = encoded({"c": Colour.GREEN})
    monkeypatch.setattr(travelling, "Colour", enum.Enum("Colour", {"LIME": "green"}, module=travelling.__name__))
    said = refusal_of(text)
    assert "tests.support.travelling:Colour no longer has a member 'GREEN'" in said
    assert said.startswith("value.c: ")


@pytest.mark.parametrize("value", [2, "1", True, (1, "y"), 2**70])
def test_a_member_that_has_another_value_now_is_named(value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    text = encoded(Colour.RED)
    monkeypatch.setattr(travelling, "Colour", enum.Enum("Colour", {"RED": value}, module=travelling.__name__))
    assert "Colour.RED is" in refusal_of(text)


def test_bits_that_are_gone_or_others_now_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    text = encoded(Right.READ | Right.WRITE)
    monkeypatch.setattr(travelling, "Right", enum.Flag("Right", {"READ": 1}, module=travelling.__name__))
    assert "no longer has all of READ, WRITE" in refusal_of(text)
    monkeypatch.setattr(travelling, "Right", enum.Flag("Right", {"READ": 1, "RUN": 2}, module=travelling.__name__))
    assert "has other members for 3 now than READ, WRITE" in refusal_of(text)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (["x"], "no longer has a field y"),
        (["x", "y", "z"], "now has a field z"),
        (["x", "w"], "no longer has a field y"),
    ],
)
def test_a_dataclass_with_other_fields_now_is_named(
    fields: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = encoded(Frozen(1, (2,)))
    changed = dataclasses.make_dataclass("Frozen", fields, namespace={"__module__": travelling.__name__})
    monkeypatch.setattr(travelling, "Frozen", changed)
    assert f"tests.support.travelling:Frozen {said}" in refusal_of(text)


def test_a_class_that_is_something_else_now_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [encoded(Frozen(1)), encoded(Colour.RED), encoded(Point(1, 2)), encoded(Struct(1)), encoded(Model(a=1))]
    for name in ("Frozen", "Colour", "Point", "Struct", "Model"):
        changed = type(name, (), {"__module__": travelling.__name__, "__qualname__": name})
        monkeypatch.setattr(travelling, name, changed)
    for text, kind in zip(texts, ("dataclass", "enum", "named tuple", "Struct", "pydantic model"), strict=True):
        assert f"is not a {kind} here" in refusal_of(text)


def test_a_class_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    text = encoded(Frozen(1))
    monkeypatch.delattr(travelling, "Frozen")
    assert "module tests.support.travelling has no type Frozen here" in refusal_of(text)


def test_nothing_is_computed_a_second_time() -> None:
    value = Derived(tags=["a"])
    value.total, value.noted["by"] = 99, "hand"
    came: Any = decode_value(encoded(value))
    assert (came.total, came.noted) == (99, {"by": "hand"})
    loud = Loud(1)
    assert decode_value(encoded(loud)) == loud
    model: Any = decode_value(encoded(Model(a=1)))
    assert model.model_fields_set == {"a"}
    assert model._secretly == 7
    assert not hasattr(decode_value(encoded(Unfinished(1))), "y")


@dataclasses.dataclass
class Cached:
    x: int

    @functools.cached_property
    def twice(self) -> int:
        return 2 * self.x


def test_what_was_only_cached_is_left_behind() -> None:
    value = Cached(2)
    assert value.twice == 4
    assert vars(decode_value(encoded(value))) == {"x": 2}


def test_a_dataclass_that_contains_itself_is_refused() -> None:
    value = Config()
    value.parent = value
    with pytest.raises(ValueNotPortable, match=r"^value\.parent: .*contains itself"):
        encoded(value)


def test_what_a_field_holds_is_refused_at_its_place() -> None:
    with pytest.raises(ValueNotPortable, match=r"^value\.c\.parent\.tags\[1\]: "):
        encoded({"c": Config(parent=Config(tags=["", object()]))})  # type: ignore[list-item]


@pytest.mark.parametrize("value", [MyInt(1), MyList([1]), MyDict(a=1), ListWithFields()])
def test_a_subclass_never_becomes_its_base(value: object) -> None:
    with pytest.raises(ValueNotPortable, match="would be lost"):
        encoded([value])


def test_classes_of_functions_and_hidden_ones_are_refused() -> None:
    class Local(enum.Enum):
        A = 1

    @dataclasses.dataclass
    class LocalToo:
        x: int = 0

    for value in (Local.A, LocalToo()):
        with pytest.raises(ValueNotPortable, match="defined inside a function"):
            encoded(value)
    with pytest.raises(ValueNotPortable, match="is not found under the name"):
        encoded(made("Hidden", "A", module=__name__).A)


def test_our_own_records_do_not_travel() -> None:
    with pytest.raises(ValueNotPortable):
        encoded(Job(1, "x"))
