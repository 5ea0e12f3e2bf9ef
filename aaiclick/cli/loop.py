"""Commands are plain functions; what they call is asynchronous."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end."""
    import asyncio  # a third of what `aaiclick --help` takes, which needs none

    return asyncio.run(work)
