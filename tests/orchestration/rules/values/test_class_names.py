"""Classes are found under their own names, and nothing else is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from aaiclick.orchestration.rules.values.class_names import NotLoaded, Unreadable, find_class, name_of
from tests.support import travelling
from tests.support.travelling import Colour, Config


def test_a_class_is_found_under_its_name() -> None:
    assert name_of(Config.Inner) == "tests.support.travelling:Config.Inner"
    assert find_class("tests.support.travelling:Config.Inner") is Config.Inner
    assert find_class(name_of(Colour)) is Colour


@pytest.mark.parametrize(
    "name",
    [
        "tests.support.travelling:enum.Enum",
        "tests.support.travelling:Any",
        "tests.support.travelling:same",
        "tests.support.travelling:Config.__init__",
        "tests.support.travelling:Config.__class__",
        "tests.support.travelling:deque",
        "tests.support.travelling",
        ":Config",
        "tests.support.travelling:",
        "os:system",
        7,
        None,
    ],
)
def test_what_is_not_called_so_is_not_found(name: object) -> None:
    with pytest.raises(Unreadable):
        find_class(name)


def test_another_name_of_a_class_is_not_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(travelling, "Hue", Colour, raising=False)
    with pytest.raises(Unreadable):
        find_class("tests.support.travelling:Hue")


def test_a_module_that_raises_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "breaks_at_import.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(NotLoaded):
        find_class("breaks_at_import:X", importing=False)
    with pytest.raises(
        Unreadable, match="importing breaks_at_import, which defines its type, raised ZeroDivisionError"
    ):
        find_class("breaks_at_import:X")
    assert "breaks_at_import" not in sys.modules
