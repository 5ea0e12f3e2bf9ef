"""What type checkers are told of names that are made at run time: the front doors, and the methods of columns.

`python -m aaiclick.stubs aaiclick` prints `aaiclick/__init__.pyi`; so it is for every module of `STUBS`.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping

from aaiclick.data.operations import AGGREGATES, FUNCTIONS, OPERATORS, WINDOWS, Operation

_SIDES = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
"""The signs that a plain value may stand on the left of."""
_TOLD = ("int", "str", "bool", "int | None", "str | None")
"""Annotations that a checker is told as they are."""

_MANY = 100
"""As many arguments as one likes."""


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


def methods() -> str:
    """`aaiclick.data.methods`, which is nothing but a stub: what the table of operations makes of columns."""
    lines = [
        "from typing import Any, Generic, TypeVar",
        "",
        "from aaiclick.data.frames import Query",
        "from aaiclick.data.groups import Grouped",
        "from aaiclick.data.terms import Term",
        "",
        'Made = TypeVar("Made")',
        "",
        *_class("Functions(Generic[Made])", [*_signs(), *_named(FUNCTIONS, "Made")]),
        *_class("FrameTotals", _named({name: AGGREGATES[name] for name in AGGREGATES if name != "count"}, "Query")),
        *_class("TermTotals", _named(AGGREGATES | WINDOWS, "Term")),
        *_class("GroupTotals", _of_groups()),
    ]
    return _page("aaiclick.data.methods", lines[:-1])


STUBS: dict[str, tuple[str, Callable[[], str]]] = {
    "aaiclick": ("aaiclick/__init__.pyi", front_door),
    "aaiclick.orchestration": ("aaiclick/orchestration/__init__.pyi", orchestration),
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


def _named(operations: Mapping[str, Operation], made: str) -> list[str]:
    taken = {name: operation for name, operation in operations.items() if operation.most}
    return [f"def {name}({_parameters(operation)}) -> {made}: ..." for name, operation in taken.items()]


def _of_groups() -> list[str]:
    """Totals of one column alone; `count` is a method of its own."""
    simple = [name for name, operation in AGGREGATES.items() if operation.most == 1 and name != "count"]
    return [f"def {name}(self, *names: str) -> Grouped: ..." for name in simple]


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
