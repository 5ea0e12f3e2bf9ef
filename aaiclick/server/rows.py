"""Many rows as JSON: without models, since checking tens of thousands of our own rows would take most of the time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec


def written(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Rows of the store as JSON has them, but for what its writer knows itself: ids are strings."""
    if not rows:
        return []
    names: tuple[str, ...] = rows[0]._fields
    ids = [place for place, name in enumerate(names) if name == "id" or name.endswith("_id")]
    found = []
    for row in rows:
        values = list(row)
        for place in ids:
            if values[place] is not None:
                values[place] = str(values[place])
        found.append(dict(zip(names, values, strict=True)))
    return found


def to_json(body: dict[str, Any]) -> bytes:
    """The whole body; times are written as everywhere, in ISO form with their offset."""
    return msgspec.json.encode(body)
