"""Names of classes in stored values, `module:qualname`, and the lookup of a class by its name.

Only a class under its own module and name is found: a stored text cannot reach through one module into another. The
lookup calls nothing that it finds.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from aaiclick.orchestration.rules.naming.script_names import MAIN, running_script


class Unreadable(ValueError):
    """A class or a stored value cannot be found or restored here: the reason, and a hint."""

    def __init__(self, rule: str, hint: str = "") -> None:
        super().__init__(rule)
        self.rule, self.hint = rule, hint


class NotLoaded(Exception):
    """The module of a class is not imported in this process, and must not be."""


def name_of(cls: type) -> str:
    """Return the name under which a worker finds the class; raise Unreadable if it would find none, or another."""
    if "<locals>" in cls.__qualname__:
        raise Unreadable("its type is defined inside a function", "Define the class at the top level of a module.")
    module = cls.__module__
    if module in MAIN:
        module = running_script() or "__main__"
    name = f"{module}:{cls.__qualname__}"
    try:
        found = find_class(name, importing=False)
    except (Unreadable, NotLoaded):
        found = None
    if found is not cls:
        rule = f"its type {cls.__qualname__} is not found under the name {name}"
        raise Unreadable(rule, "Define the class at the top level of a module, under its own name.")
    return name


def find_class(name: object, *, importing: bool = True) -> type:
    """Return the class of this name; import its module, or without `importing` raise NotLoaded if it is not loaded."""
    module_name, colon, qualname = name.partition(":") if isinstance(name, str) else ("", "", "")
    if not colon or not qualname:
        raise Unreadable(f"{name!r} is not the name of a type")
    found: Any = _module(module_name, importing)
    for part in qualname.split("."):
        found = vars(found).get(part)
        if not isinstance(found, type):
            hint = "The type existed when the value was stored: restore it, or rerun the task that made the value."
            raise Unreadable(f"module {module_name} has no type {qualname} here", hint)
    if found.__qualname__ != qualname or not _is_of(found, module_name):
        raise Unreadable(f"{name} is not a valid name of a type", "")
    return found  # type: ignore[no-any-return]


def _is_of(cls: type, module_name: str) -> bool:
    return cls.__module__ == module_name or (cls.__module__ in MAIN and module_name in (running_script(), *MAIN))


def _module(name: str, importing: bool) -> Any:
    if name in MAIN or name == running_script():
        return sys.modules["__main__"]
    if name in sys.modules:
        return sys.modules[name]
    if not importing:
        raise NotLoaded(name)
    try:
        return importlib.import_module(name)
    except Exception as error:  # the module is the user's code: it may raise anything
        rule = f"importing {name}, which defines its type, raised {type(error).__name__}"
        raise Unreadable(rule, "Workers need the module too.") from error
