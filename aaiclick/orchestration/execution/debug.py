"""The former place of `job_test`, kept for existing imports. It is in `launchers/debug`, which needs a database."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """Import `launchers/debug` by name, at access time: `execution` must not depend on database code."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(importlib.import_module("aaiclick.orchestration.launchers.debug"), name)
