"""How a model reaches the functions that people call: `job.test()`, `job.tasks`, `group.child_groups`.

The models are at the bottom of the house and the front door is at its top, so they are joined by name, at call time.
"""

from __future__ import annotations

import importlib
from typing import Any


def front_door(name: str) -> Any:
    """The public function of `aaiclick.orchestration` with this name."""
    return getattr(importlib.import_module("aaiclick.orchestration"), name)


def ask(name: str, *arguments: object) -> Any:
    """Call such a function that is to be awaited, and wait for its answer, inside a running loop too."""
    blocking = importlib.import_module("aaiclick.orchestration.blocking").blocking
    return blocking(lambda: front_door(name)(*arguments))
