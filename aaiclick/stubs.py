"""What type checkers are told of names that are made at run time: the front doors, and the methods of columns.

`python -m aaiclick.stubs aaiclick` prints `aaiclick/__init__.pyi`; so it is for every module of `STUBS`.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any

from aaiclick.data.operations import AGGREGATES, FUNCTIONS, OPERATORS, WINDOWS, Operation
from aaiclick.data.query.total_methods import BY_NAME, Pairs, Totals
from aaiclick.data.query.window_methods import Windows

_SIDES = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
"""The signs that a plain value may stand on the left of."""
_TOLD = ("int", "str", "bool", "int | None", "str | None")
"""Annotations that a checker is told as they are."""

_WIDTH = 120
_MANY = 100
"""As many arguments as one likes."""

CHOICES = {name: method for kind in (Totals, Pairs, Windows) for name, method in vars(kind).items() if name[0] != "_"}
"""Totals and windows that are methods, typed where they stand."""

_SIMPLE = [name for name in AGGREGATES if name not in CHOICES]


def front_door() -> str:
    """`aaiclick` itself: all names of its rooms."""
    tables = vars(importlib.import_module("aaiclick"))
    rooms = [importlib.import_module(f"aaiclick.{room}") for room in reversed(tables["_ROOMS"])]
    where = {name: room.__name__ for room in rooms for name in room.__all__}
    where |= {name: f"aaiclick.{room}" for name, room in tables["_SHARED"].items()}
    lines = [
        "from aaiclick import data as data",
        "from aaiclick import orchestration as orchestration",
        *_imports(where),
        "",
        "__version__: str",
    ]
    return _page("aaiclick", lines)


def orchestration() -> str:
    """`aaiclick.orchestration`: each name from the module that has it."""
    module = importlib.import_module("aaiclick.orchestration")
    tables = vars(module)
    where = {name: f"aaiclick.orchestration.{room}" for name, room in tables["_MODULE_OF"].items()}
    names = [f'    "{name}",' for name in module.__all__]
    return _page(module.__name__, [*_imports(where | tables["_ELSEWHERE"]), "", "__all__ = [", *names, "]"])


def data() -> str:
    """`aaiclick.data`: likewise."""
    module = importlib.import_module("aaiclick.data")
    where = {name: f"aaiclick.data.{room}" for name, room in vars(module)["_MODULE_OF"].items()}
    names = [f'    "{name}",' for name in module.__all__]
    return _page(module.__name__, [*_imports(where), "", "__all__ = [", *names, "]"])


def methods() -> str:
    """`aaiclick.data.methods`, which is nothing but a stub: what the table of operations makes of columns."""
    lines = [
        "from collections.abc import Sequence",
        "from typing import Any, Generic, TypeVar",
        "",
        "from aaiclick.data.frames import Query",
        "from aaiclick.data.groups import Grouped",
        "from aaiclick.data.operations.totals import Degrees",
        "from aaiclick.data.query.column_terms import Term",
        "",
        'Made = TypeVar("Made")',
        "",
        *_class("Functions(Generic[Made])", [*_signs(), *_named(FUNCTIONS, "Made")]),
        *_class("FrameTotals", _totals("Query", [name for name in _SIMPLE if name != "count"])),
        *_class("TermTotals", [*_totals("Term", _SIMPLE), *_named(WINDOWS, "Term", but=CHOICES)]),
        *_class("RollingTotals(Generic[Made])", _totals("Made", _SIMPLE)),
        *_class("GroupTotals", _of_groups()),
    ]
    return _page("aaiclick.data.methods", lines[:-1])


STUBS: dict[str, tuple[str, Callable[[], str]]] = {
    "aaiclick": ("aaiclick/__init__.pyi", front_door),
    "aaiclick.orchestration": ("aaiclick/orchestration/__init__.pyi", orchestration),
    "aaiclick.data": ("aaiclick/data/__init__.pyi", data),
    "aaiclick.data.methods": ("aaiclick/data/methods.pyi", methods),
}
"""Where each is, and what prints it."""


def _page(module: str, lines: Iterable[str]) -> str:
    return "\n".join([f"# printed by `python -m aaiclick.stubs {module}`; a test compares", "", *lines, ""])


def _imports(where: Mapping[str, str]) -> list[str]:
    """In the order in which ruff wants them: constants, classes, functions."""
    order = sorted(where, key=lambda name: (where[name], not name.isupper(), not name[0].isupper(), name))
    return [f"from {where[name]} import {name} as {name}" for name in order]


def _class(head: str, body: Iterable[str]) -> Iterator[str]:
    yield f"class {head}:"
    yield from (f"    {line}" for line in body)
    yield ""


def _signs() -> Iterator[str]:
    yield "def __hash__(self) -> int: ..."
    for name, operation in OPERATORS.items():
        differs = "  # type: ignore[override]" if name in ("eq", "ne") else ""  # a column, where object has a bool
        yield f"def __{name}__({_parameters(operation)}) -> Made: ...{differs}"
        if name in _SIDES:
            yield f"def __r{name}__({_parameters(operation)}) -> Made: ..."


def _named(operations: Mapping[str, Operation], made: str, but: Container[str] = ()) -> list[str]:
    taken = {name: each for name, each in operations.items() if each.most and name not in but}
    return [f"def {name}({_parameters(operation)}) -> {made}: ..." for name, operation in taken.items()]


def _totals(made: str, names: Iterable[str]) -> list[str]:
    """Totals of one column; those with choices are methods of their own."""
    return [f"def {name}(self, *, where: Any = ...) -> {made}: ..." for name in names]


def _of_groups() -> list[str]:
    """Totals of columns that are named, with their choices; `count` is a method of its own."""
    simple = ["where: Any = ..."]
    choices = {name: simple for name in _SIMPLE if name != "count"}
    choices |= {name: _choices(method) for name, method in CHOICES.items() if name in BY_NAME}
    return [line for name, given in choices.items() for line in _wrapped(name, ["self", "*names: str", *given])]


def _wrapped(name: str, given: Sequence[str]) -> list[str]:
    line = f"def {name}({', '.join(given)}) -> Grouped: ..."
    if len(line) + 4 <= _WIDTH:
        return [line]
    return [f"def {name}(", *(f"    {each}," for each in given), ") -> Grouped: ..."]


def _choices(method: Callable[..., Any]) -> list[str]:
    given = list(signature(method).parameters.values())[1:]
    return [f"{each.name}: {each.annotation}{' = ...' * (each.default is not Parameter.empty)}" for each in given]


def _parameters(operation: Operation) -> str:
    """The column itself is the first; the others have no names at run time, unless the operation is made of them."""
    if operation.make is not None:
        named = inspect.signature(operation.make).parameters.values()
        return ", ".join(["self", *(_parameter(each) for each in named)])
    fixed = operation.least if operation.most == _MANY else operation.most
    given = ["self", *(f"value{n}: Any{' = ...' * (n >= operation.least)}" for n in range(1, fixed))]
    given += ["/"] * (fixed > 1) + ["*values: Any"] * (operation.most == _MANY)
    return ", ".join(given)


def _parameter(parameter: inspect.Parameter) -> str:
    kind = parameter.annotation if parameter.annotation in _TOLD else "Any"
    return f"{parameter.name}: {kind}{'' if parameter.default is parameter.empty else ' = ...'}"


if __name__ == "__main__":
    sys.stdout.write(STUBS[sys.argv[1]][1]())
