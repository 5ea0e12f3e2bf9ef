"""The canonical text of what a task needs of its worker: equal needs give equal texts, which the store interns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

PLAIN = 0
"""The lane of tasks without needs: any worker may run them."""


def canonical(needs: Mapping[str, Any]) -> str:
    """Return the needs as JSON with sorted names and no blanks."""
    return json.dumps(needs, sort_keys=True, allow_nan=False, separators=(",", ":"))
