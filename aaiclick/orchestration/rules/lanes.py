"""What a task needs of whoever runs it, as text: the same needs are always the same text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

PLAIN = 0
"""The lane of tasks that need nothing: anybody may run them."""


def canonical(needs: Mapping[str, Any]) -> str:
    """Return the text of these needs, in which neither the order of names nor blanks can differ."""
    return json.dumps(needs, sort_keys=True, allow_nan=False, separators=(",", ":"))
