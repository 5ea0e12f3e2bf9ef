"""Where `job_test` was, and where it is still looked for: it is in `launchers/debug`, which has a database."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """Joined by name, at call time: execution itself knows nothing of databases."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(importlib.import_module("aaiclick.orchestration.launchers.debug"), name)
