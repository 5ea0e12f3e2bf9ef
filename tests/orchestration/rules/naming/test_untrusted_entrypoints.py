"""Entrypoints that came from outside carry a mark, and stand for decorated functions only."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from aaiclick.errors import EntrypointError
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import (
    allowed_for,
    are_from_outside,
    arguments_from_outside,
    carried,
    check_asked,
    check_found,
    has_outside_arguments,
    is_marked,
    is_under,
    marked,
    named,
    plain,
    shown,
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


def test_names_that_nobody_may_ask_for() -> None:
    check_asked("@app.load", ("app",))
    check_asked("aaiclick.orchestration.examples.orchestration_basic.pipeline", ("aaiclick",))
    for name, allowed, said in (
        ("app.load", ("other",), "these may be run: other"),
        ("app.load", (), "these may be run: none"),
        ("app.__main__.load", ("app",), "begin with __"),
        ("app.load.__wrapped__", ("app",), "begin with __"),
        ("aaiclick.orchestration.run_job", ("aaiclick",), "own functions"),
    ):
        with pytest.raises(EntrypointError, match=said):
            check_asked(name, allowed)


def test_where_nothing_is_set_it_has_to_be_of_the_package_that_the_name_tells() -> None:
    assert allowed_for("@app.flows.load", ()) == ("app",)
    assert allowed_for("@app.flows.load", ("x",)) == ("x",)


def test_what_is_found_must_be_decorated_and_written_there() -> None:
    here = __name__.partition(".")[0]
    check_found("@tests.f", "job", is_here, ("tests", here))
    with pytest.raises(EntrypointError, match="only functions marked"):
        check_found("@tests.f", None, is_here, (here,))
    with pytest.raises(EntrypointError, match=r"is tests.*is_here"):
        check_found("@tests.f", "task", is_here, ("other",))
    with pytest.raises(EntrypointError, match="own functions"):
        check_found("@tests.f", "task", plain, ("aaiclick",))
    with pytest.raises(EntrypointError, match="only plain functions"):
        check_found("@tests.f", "task", len, ("builtins",))


def test_in_a_job_that_came_from_outside_texts_are_marked_and_what_code_chose_is_carried() -> None:
    assert named("os.system", ()) == carried("os.system") == "os.system"
    with arguments_from_outside():
        assert named("app.load", ("app",)) == named("~app.load", ("app",)) == "@app.load"
        assert carried("app.load") == carried(carried("app.load")) == "~app.load"
        assert carried("@app.load") == "@app.load"
        with pytest.raises(EntrypointError, match="these may be run: app"):
            named("~os.system", ("app",))
    assert shown("~app.load") == plain("~app.load") == "app.load"
    assert shown("@app.load") == "@app.load"
    assert [has_outside_arguments(each) for each in ("@a.b", "~a.b", "a.b")] == [True, True, False]


def test_a_thread_that_nobody_told_is_judged_while_there_is_anything_from_outside() -> None:
    """A body may begin threads, which do not know its surroundings."""
    with ThreadPoolExecutor(1) as threads:
        assert not threads.submit(are_from_outside).result()
        with arguments_from_outside():
            with arguments_from_outside(False):  # who was told that nothing is stays with that
                assert not are_from_outside()
                assert threads.submit(are_from_outside).result()
            assert are_from_outside()
        assert not threads.submit(are_from_outside).result()


def is_here() -> None:
    """A function of the tests."""


def test_stand_ins_count_inside_only() -> None:
    thing = object()
    with standing_in({"@app.load": thing}):
        assert stand_in_for("@app.load") is thing
        assert stand_in_for("app.load") is None
        assert stand_in_for(5) is None
    assert stand_in_for("@app.load") is None
