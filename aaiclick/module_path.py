"""Where the user's modules are looked for: last, so that none of them hides one of Python's own or an installed one."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

_chosen: list[str] = []
"""Places that somebody has named: then the current directory is none, unless it is among them."""


def our_python(module: str, *arguments: str) -> list[str]:
    """The command of a process of ours: Python does not put the current directory before everything else (-P)."""
    return [sys.executable, "-P", "-m", module, *arguments]


def search_in(*places: str) -> None:
    """Look for modules in these directories too, after all others."""
    for place in places:
        _chosen.append(place)
        if place not in sys.path:
            sys.path.append(place)
    importlib.invalidate_caches()


def search_in_current(package: str) -> None:
    """Let the current directory be searched for a package that is found nowhere, unless somebody has named a place."""
    if _chosen or package in sys.modules or sys.flags.safe_path or importlib.util.find_spec(package) is not None:
        return
    here = current_directory()
    if here and here not in sys.path:
        sys.path.append(here)
        importlib.invalidate_caches()


def searched_places() -> list[str]:
    """All places where this process looks for modules, as another process can be told of them."""
    return [place for place in (each or current_directory() for each in sys.path) if place]


def usual_place() -> str:
    """Where a process of ours looks for modules if nobody says; empty for nowhere else than Python does."""
    return "" if sys.flags.safe_path else current_directory()


def current_directory() -> str:
    """Its path; empty if it was deleted."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def found_instead(name: str, file: str) -> str | None:
    """Where workers, who look in the user's directory last, find another module of that name; None if nowhere."""
    try:
        for spec in (importlib.util.find_spec(name), _found_without(name, os.path.dirname(os.path.abspath(file)))):
            if spec is not None and not _is_same(spec.origin, file):
                return f"the module {spec.origin or name}"
    except (ImportError, ValueError):
        pass
    return None


def _found_without(name: str, place: str) -> importlib.machinery.ModuleSpec | None:
    others: Sequence[str] = [each for each in sys.path if each and not _is_same(each, place)]
    spec = BuiltinImporter.find_spec(name) or FrozenImporter.find_spec(name) or PathFinder.find_spec(name, others)
    return spec if spec is not None and spec.loader is not None and spec.origin is not None else None


def _is_same(one: str | None, other: str) -> bool:
    try:
        return one is not None and os.path.samefile(one, other)
    except OSError:
        return False
