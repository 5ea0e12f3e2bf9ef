"""Entrypoints that came from outside carry a mark, and stand for decorated functions only."""

from __future__ import annotations

import pytest

from aaiclick.errors import EntrypointError
from aaiclick.orchestration.rules.entrypoints import (
    check_marked,
    is_marked,
    is_under,
    marked,
    plain,
    stand_in_for,
    standing_in,
)


def test_a_mark_comes_and_goes() -> None:
    assert marked("app.flows.load") == marked("@app.flows.load") == "@app.flows.load"
    assert plain("@app.flows.load") == plain("app.flows.load") == "app.flows.load"
    assert is_marked("@a.b")
    assert not is_marked("a.b")
    assert not is_marked(None)


@pytest.mark.parametrize(
    ("entrypoint", "prefixes", "under"),
    [
        ("app.flows.load", ("app",), True),
        ("app.flows.load", ("app.flows", "x"), True),
        ("app.flows.load", ("app.flows.load",), True),
        ("application.load", ("app",), False),
        ("app", ("app.flows",), False),
        ("app.flows.load", (), False),
        ("@app.flows.load", ("app",), True),
    ],
)
def test_what_lies_under_a_prefix(entrypoint: str, prefixes: tuple[str, ...], under: bool) -> None:
    assert is_under(entrypoint, prefixes) is under


def test_what_is_marked_must_be_decorated_and_allowed() -> None:
    check_marked("app.load", None, ())
    check_marked("@app.load", "task", ())
    check_marked("@app.load", "job", ("app",))
    with pytest.raises(EntrypointError, match="only functions marked"):
        check_marked("@app.load", None, ())
    with pytest.raises(EntrypointError, match="these may be run: other"):
        check_marked("@app.load", "task", ("other",))


def test_stand_ins_count_inside_only() -> None:
    thing = object()
    with standing_in({"@app.load": thing}):
        assert stand_in_for("@app.load") is thing
        assert stand_in_for("app.load") is None
        assert stand_in_for(5) is None
    assert stand_in_for("@app.load") is None
