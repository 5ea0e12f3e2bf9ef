"""The canonical text of what a task needs of its worker: equal needs give equal texts, which the store interns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

PLAIN = 0
"""The lane of tasks without needs: any worker may run them."""


class KnownLanes:
    """The lanes that this process has met. They never change, so none is asked for twice."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        """By the canonical text of their needs."""
        self.needs: dict[int, Mapping[str, Any]] = {}
        self.met: set[int] = set()
        """Those of which it is known that some registered node may serve them."""

    def learn(self, lane: int, text: str, needs: Mapping[str, Any] | None = None) -> None:
        """Note the needs of a lane."""
        self.numbers[text] = lane
        self.needs[lane] = json.loads(text) if needs is None else needs


def canonical(needs: Mapping[str, Any]) -> str:
    """Return the needs as JSON with sorted names and no blanks."""
    return json.dumps(needs, sort_keys=True, allow_nan=False, separators=(",", ":"))
