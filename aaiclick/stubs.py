"""Generates the .pyi stubs for names that are made at run time: public re-exports and the methods of columns.

`python -m aaiclick.stubs aaiclick` prints `aaiclick/__init__.pyi`; likewise for every module of `STUBS`.
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
"""The operators that accept a plain value as their left operand."""
_TOLD = ("int", "str", "bool", "int | None", "str | None")
"""Annotations that are copied to the stub; all others become Any."""

_WIDTH = 120
_MANY = 100
"""The `most` of operations that take any number of arguments."""

CHOICES = {name: method for kind in (Totals, Pairs, Windows) for name, method in vars(kind).items() if name[0] != "_"}
"""Totals and windows that are written as methods, whose own annotations are used."""

_SIMPLE = [name for name in AGGREGATES if name not in CHOICES]


def front_door() -> str:
    """Return the stub of `aaiclick`: all names of its public packages."""
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
    """Return the stub of `aaiclick.orchestration`: each name imported from the module that defines it."""
    module = importlib.import_module("aaiclick.orchestration")
    tables = vars(module)
    where = {name: f"aaiclick.orchestration.{room}" for name, room in tables["_MODULE_OF"].items()}
    names = [f'    "{name}",' for name in module.__all__]
    return _page(module.__name__, [*_imports(where | tables["_ELSEWHERE"]), "", "__all__ = [", *names, "]"])


def data() -> str:
    """Return the stub of `aaiclick.data`: each name imported from the module that defines it."""
    module = importlib.import_module("aaiclick.data")
    where = {name: f"aaiclick.data.{room}" for name, room in vars(module)["_MODULE_OF"].items()}
    names = [f'    "{name}",' for name in module.__all__]
    return _page(module.__name__, [*_imports(where), "", "__all__ = [", *names, "]"])


def methods() -> str:
    """Return the stub `aaiclick.data.methods`: the methods that the table of operations adds to columns.

    There is no module of this name at run time.
    """
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
"""The file of each module's stub, and the function that returns its text."""


def _page(module: str, lines: Iterable[str]) -> str:
    return "\n".join([f"# printed by `python -m aaiclick.stubs {module}`; a test compares", "", *lines, ""])


def _imports(where: Mapping[str, str]) -> list[str]:
    """Return import lines in the order ruff demands: by module, then constants, classes, functions."""
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
    """Return totals of one column; those with options are methods of their own."""
    return [f"def {name}(self, *, where: Any = ...) -> {made}: ..." for name in names]


def _of_groups() -> list[str]:
    """Return totals of named columns, with their options; `count` is a method of its own."""
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
    """Return the parameters of an operation's method: self is the column.

    The others are positional only, as they have no names at run time, unless the operation has a `make` function.
    """
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
