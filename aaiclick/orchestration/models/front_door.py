"""Calls from models to public functions, which `job.test()`, `job.tasks` and `group.child_groups` need.

Models must not import the modules of these functions, which import the models. So the functions are looked up by name
at call time.
"""

from __future__ import annotations

import importlib
from typing import Any


def front_door(name: str) -> Any:
    """Return the public function of `aaiclick.orchestration` with this name."""
    return getattr(importlib.import_module("aaiclick.orchestration"), name)


def ask(name: str, *arguments: object) -> Any:
    """Call an async public function and wait for its result, which also works inside a running event loop."""
    blocking = importlib.import_module("aaiclick.orchestration.blocking").blocking
    return blocking(lambda: front_door(name)(*arguments))
