"""Durable, distributed data workflows from plain Python functions.

What people call to build workflows and to work with data can be had from here; a name is loaded when it is first used.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # typing would be looked for in the current directory first, under python -m
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

_ROOMS = ("orchestration", "data")
_SHARED = {"Context": "orchestration"}
"""Names that both have: `aaiclick.data` keeps its own."""


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"{__name__}.{name}")
    if not name.startswith("_"):
        for room in [_SHARED[name]] if name in _SHARED else _ROOMS:
            module = importlib.import_module(f"{__name__}.{room}")
            if name in module.__all__:
                value = globals()[name] = getattr(module, name)
                return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    names = {name for room in _ROOMS for name in importlib.import_module(f"{__name__}.{room}").__all__}
    return sorted([*names, *globals()])
