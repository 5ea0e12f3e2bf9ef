"""The search path for the user's modules: after all other places, so that none hides a standard or installed module."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

_chosen: list[str] = []
"""Directories passed to `search_in`. If there are any, `search_in_current` does nothing."""


def our_python(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of aaiclick. -P keeps the current directory off the head of sys.path."""
    return [sys.executable, "-P", "-m", module, *arguments]


def search_in(*places: str) -> None:
    """Append these directories to sys.path."""
    for place in places:
        _chosen.append(place)
        if place not in sys.path:
            sys.path.append(place)
    importlib.invalidate_caches()


def search_in_current(package: str) -> None:
    """Append the current directory to sys.path if the package is not found; do nothing after `search_in`."""
    if _chosen or package in sys.modules or sys.flags.safe_path or importlib.util.find_spec(package) is not None:
        return
    here = current_directory()
    if here and here not in sys.path:
        sys.path.append(here)
        importlib.invalidate_caches()


def searched_places() -> list[str]:
    """Return sys.path with the empty entry resolved, so that it can be passed to another process."""
    return [place for place in (each or current_directory() for each in sys.path) if place]


def usual_place() -> str:
    """Return the directory that a process of aaiclick searches by default; empty if Python runs with -P."""
    return "" if sys.flags.safe_path else current_directory()


def current_directory() -> str:
    """Return the path of the current directory; empty if it was deleted."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def found_instead(name: str, file: str) -> str | None:
    """Return the other module that workers would import by this name, instead of `file`; None if there is none.

    Workers search the user's directory last, so a standard or installed module of the same name comes first.
    """
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
