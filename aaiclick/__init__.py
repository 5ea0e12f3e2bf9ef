"""Durable, distributed data workflows from plain Python functions.

Re-exports the public names of `aaiclick.orchestration` and `aaiclick.data`. Each name is imported at its first use.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # under python -m, `import typing` would search the current directory first
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

_ROOMS = ("orchestration", "executors", "data")
_SHARED = {"Context": "orchestration"}
"""Names that both packages export: `aaiclick` re-exports the one of the package given here."""


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
