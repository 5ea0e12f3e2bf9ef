"""From a function to its entrypoint and back, and whether its arguments fit."""

from __future__ import annotations

import functools
import os
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from aaiclick.errors import EntrypointError, SignatureMismatch
from aaiclick.orchestration.submitting.entrypoints import (
    bind,
    check_call,
    entrypoint_of,
    importing,
    kind_of,
    required_names,
    resolve,
    unwrap,
)


class Factory:
    """What a decorator makes, as far as this module cares."""

    __aaiclick__ = "task"

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self) -> None:
        raise AssertionError("never called")


def plain(x: int, y: int = 2, *, z: int = 3) -> int:
    return x + y + z


class Holder:
    @staticmethod
    def static() -> None: ...

    def method(self) -> None: ...

    def __call__(self) -> None: ...


@Factory
def decorated(a: int) -> int:
    return a


def loud(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@loud
def wrapped(a: int) -> int:
    return a


def outer() -> Any:
    def inner() -> None: ...

    return inner


def refusal(call: Callable[..., object], *args: Any, **kwargs: Any) -> str:
    with pytest.raises(EntrypointError) as caught:
        call(*args, **kwargs)
    return str(caught.value)


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Writes modules that can be imported during the test."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def write(path: str, text: str) -> None:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text), encoding="utf-8")

    yield write
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


# ---------------------------------------------------------------- decorated


def test_decorated_functions_are_recognised() -> None:
    assert kind_of(decorated) == "task"
    assert unwrap(decorated)(5) == 5
    assert kind_of(plain) is None
    assert unwrap(plain) is plain
    assert unwrap(5) == 5


# ---------------------------------------------------------------- to an entrypoint


def test_a_function_is_named_by_module_and_qualname() -> None:
    assert entrypoint_of(plain) == f"{__name__}.plain"
    assert entrypoint_of(Holder.static) == f"{__name__}.Holder.static"
    assert entrypoint_of(decorated) == f"{__name__}.decorated"
    assert entrypoint_of(wrapped) == f"{__name__}.wrapped"
    assert entrypoint_of(dedent) == "textwrap.dedent"


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (lambda: 1, "a lambda has no name"),
        (outer(), "inside a function"),
        (os.system, "built into Python"),
        (len, "built into Python"),
        (Holder().method, "bound to an object"),
        (functools.partial(plain, 1), "partial"),
        (functools.lru_cache(plain), "not a function"),
        (Holder(), "not a function"),
        (Holder, "a class"),
        (5, "cannot be called"),
        ("module.function", "cannot be called"),
        (None, "cannot be called"),
    ],
)
def test_what_no_worker_could_find_is_refused(thing: object, said: str) -> None:
    message = refusal(entrypoint_of, thing)
    assert said in message
    assert message.endswith(".")


def test_a_function_without_a_module_is_refused() -> None:
    stray = types.FunctionType(nothing.__code__, {"__name__": None})
    assert "no module" in refusal(entrypoint_of, stray)


# ---------------------------------------------------------------- from an entrypoint


def test_an_entrypoint_is_found_again(modules: Callable[[str, str], None]) -> None:
    modules("flows/__init__.py", "from flows.load import load")
    modules("flows/load.py", "def load(): return 1\nclass Steps:\n    @staticmethod\n    def one(): return 2")
    assert resolve("flows.load.load")() == 1
    assert resolve("flows.load.Steps.one")() == 2
    assert resolve("textwrap.dedent") is dedent


def test_decorated_functions_are_found_as_they_are(modules: Callable[[str, str], None]) -> None:
    modules(
        "decorated_flow.py",
        """
        class Factory:
            __aaiclick__ = "job"
            def __init__(self, function): self.function = function
            def __call__(self): ...
        @Factory
        def f(): return 5
        """,
    )
    found = resolve("decorated_flow.f")
    assert kind_of(found) == "job"
    assert unwrap(found)() == 5


@pytest.mark.parametrize(
    ("entrypoint", "said"),
    [
        ("no_such_module.f", "there is no module no_such_module"),
        ("no_such_module.sub.f", "there is no module no_such_module"),
        ("textwrap.no_such", "textwrap has no no_such"),
        ("textwrap.no_such.f", "textwrap has no no_such.f"),
        ("os.no_such.f", "os has no no_such.f"),
        ("os.sep", "cannot be called"),
        ("os.system", "built into Python"),
        ("builtins.eval", "built into Python"),
        ("decimal.Decimal", "a class"),
        ("textwrap", "not a dotted name"),
        ("", "not a dotted name"),
        (".f", "not a dotted name"),
        ("a..b", "not a dotted name"),
        ("textwrap:dedent", "not a dotted name"),
        ("../../etc/passwd", "not a dotted name"),
        ("textwrap.dedent()", "not a dotted name"),
        ("a\0.b", "not a dotted name"),
        ("__main__.f", "a different module in every process"),
        (5, "it is a int"),
        (None, "it is a NoneType"),
    ],
)
def test_a_bad_entrypoint_is_refused(entrypoint: Any, said: str) -> None:
    assert said in refusal(resolve, entrypoint)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("import sys; sys.exit(3)", "called sys.exit(3)"),
        ("raise SystemExit", "called sys.exit(None)"),
        ("1 / 0", "raised ZeroDivisionError: division by zero"),
        ("import no_such_dependency", "raised ModuleNotFoundError: No module named 'no_such_dependency'"),
        ("from textwrap import no_such", "raised ImportError"),
        ("def f(:", "raised SyntaxError"),
        ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E", "cannot be shown"),
        ("raise ValueError('\\x1b[31m\\n' * 10**6)", "raised ValueError: \\x1b[31m\\x0a"),
        ("raise ExceptionGroup('several', [ValueError(1)])", "raised ExceptionGroup"),
    ],
)
def test_an_import_that_fails_fails_only_the_entrypoint(
    modules: Callable[[str, str], None], body: str, said: str
) -> None:
    modules("broken_flow.py", body)
    message = refusal(resolve, "broken_flow.f")
    assert said in message
    assert len(message) < 800
    assert importing() is None
    assert "broken_flow" not in sys.modules


def test_the_cause_of_a_failed_import_is_kept(modules: Callable[[str, str], None]) -> None:
    modules("broken_flow.py", "1 / 0")
    with pytest.raises(EntrypointError) as caught:
        resolve("broken_flow.f")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_ctrl_c_during_an_import_is_not_swallowed(modules: Callable[[str, str], None]) -> None:
    modules("slow_flow.py", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        resolve("slow_flow.f")
    assert importing() is None


def test_a_module_can_tell_that_it_is_imported_for_an_entrypoint(modules: Callable[[str, str], None]) -> None:
    modules("inner_flow.py", "from aaiclick.orchestration.submitting.entrypoints import importing\nseen = importing()")
    modules(
        "outer_flow.py",
        """
        import inner_flow
        from aaiclick.orchestration.submitting.entrypoints import importing, resolve
        resolve("textwrap.dedent")
        seen = importing()
        def f(): return seen, inner_flow.seen
        """,
    )
    assert importing() is None
    assert resolve("outer_flow.f")() == ("outer_flow", "outer_flow")
    assert importing() is None


def test_a_deleted_current_directory_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert "there is no module" in refusal(resolve, "no_such_module.f")


# ---------------------------------------------------------------- arguments


def positional_only(a: int, /, b: int) -> None: ...
def optional_positional_only(a: int = 1, /, **more: int) -> None: ...
def many(*args: int, key: int = 1) -> None: ...
def open_ended(a: int, **more: int) -> None: ...
def nothing() -> None: ...


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (plain, ["x"]),
        (plain, ["x", "y", "z"]),
        (open_ended, ["a"]),
        (open_ended, ["a", "b", "c"]),
        (nothing, []),
        (many, []),
        (many, ["key"]),
        (decorated, ["a"]),
        (wrapped, ["a"]),
        (optional_positional_only, ["a", "b"]),
    ],
)
def test_a_call_that_fits_is_accepted(function: Any, names: list[str]) -> None:
    check_call(function, names, "m.f")


@pytest.mark.parametrize(
    ("function", "names", "said"),
    [
        (plain, [], "missing: 'x'"),
        (plain, ["y"], "missing: 'x'"),
        (plain, ["x", "q", "p"], "unexpected: 'p', 'q'"),
        (plain, ["q"], "missing: 'x'; unexpected: 'q'"),
        (nothing, ["a"], "unexpected: 'a'"),
        (many, ["args"], "unexpected: 'args'"),
        (open_ended, ["b"], "missing: 'a'"),
        (positional_only, ["a", "b"], "positional-only, but tasks are called by keyword: 'a'"),
        (positional_only, ["b"], "positional-only"),
        (decorated, [], "missing: 'a'"),
        (wrapped, ["b"], "missing: 'a'; unexpected: 'b'"),
    ],
)
def test_a_call_that_does_not_fit_is_refused(function: Any, names: list[str], said: str) -> None:
    with pytest.raises(SignatureMismatch) as caught:
        check_call(function, names, "m.f")
    assert str(caught.value).startswith("m.f does not take these arguments: ")
    assert said in str(caught.value)
    assert isinstance(caught.value, TypeError)


def test_the_signature_is_shown() -> None:
    with pytest.raises(SignatureMismatch, match=r"Its signature is plain\(x: int, y: int = 2, \*, z: int = 3\)"):
        check_call(plain, [], "m.f")


def test_a_signature_whose_defaults_cannot_be_shown_is_shown_without() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError

    def silent(a: int, b: object = Silent()) -> None: ...

    with pytest.raises(SignatureMismatch, match=r"\(a, b\)"):
        check_call(silent, [], "m.f")


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "bound"),
    [
        (plain, (1,), {}, {"x": 1}),
        (plain, (1, 2), {"z": 3}, {"x": 1, "y": 2, "z": 3}),
        (plain, (), {"x": 1}, {"x": 1}),
        (open_ended, (1,), {"b": 2}, {"a": 1, "b": 2}),
        (nothing, (), {}, {}),
        (many, (), {"key": 5}, {"key": 5}),
        (decorated, ([1],), {}, {"a": [1]}),
        (wrapped, (1,), {}, {"a": 1}),
        (dict, (), {"a": 1}, {"a": 1}),
    ],
)
def test_arguments_are_bound_to_names(function: Any, args: Any, kwargs: Any, bound: Any) -> None:
    assert bind(function, args, kwargs) == bound


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "said"),
    [
        (plain, (), {}, "missing: 'x'"),
        (plain, (1, 2, 3), {}, "it takes 2 positional arguments, 3 were given"),
        (plain, (1,), {"x": 1}, "given twice: 'x'"),
        (plain, (1,), {"q": 1}, "unexpected: 'q'"),
        (many, (1,), {}, "would go into *args"),
        (positional_only, (1, 2), {}, "positional-only"),
        (optional_positional_only, (1,), {}, "positional-only"),
        (nothing, (1,), {}, "it takes 0 positional arguments, 1 were given"),
        (dict, (1,), {}, "it takes 0 positional"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(function: Any, args: Any, kwargs: Any, said: str) -> None:
    with pytest.raises(SignatureMismatch) as caught:
        bind(function, args, kwargs)
    assert said in str(caught.value)


def test_binding_does_not_share_the_callers_dict() -> None:
    kwargs = {"x": 1}
    assert bind(plain, (), kwargs) is not kwargs


def test_what_a_call_needs_is_known() -> None:
    assert required_names(plain) == {"x"}
    assert required_names(Factory(plain)) == {"x"}
    assert required_names(5) == frozenset()
