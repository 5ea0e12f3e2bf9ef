"""Executors besides Python functions: `shell` runs a command, `rest` calls an address.

Each name is imported at its first use.
"""

from __future__ import annotations

import importlib
from typing import Any

_WHERE = {
    "executor_types": "aaiclick.orchestration.submitting.executors",
    "rest": "aaiclick.executors.rest_call",
    "shell": "aaiclick.executors.shell_command",
}

__all__ = sorted(_WHERE)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_WHERE[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
