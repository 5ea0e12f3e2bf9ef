"""Objects that results refer to: opened where there is a `data_context` around, else left as references."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aaiclick.orchestration.rules.marks import marks_of, mentions_objects

Opened = Callable[[str, Any], object]


async def opened_here(texts: Iterable[str | None]) -> Opened | None:
    """What opens the references in these texts; None if nothing refers to Objects, or they cannot be opened here."""
    mentioning = [text for text in texts if text is not None and mentions_objects(text)]
    if not mentioning:
        return None
    from aaiclick.data.context import current_context, is_context_around  # here, to keep start-up light

    if not is_context_around():
        return None
    context = await current_context()
    opened: dict[str, object] = {}
    for text in mentioning:
        for kind, payload in marks_of(text):
            if kind in ("object", "view") and isinstance(payload, dict):
                key = key_of(kind, payload)
                if key not in opened:
                    opened[key] = await context.open_reference({"object_type": kind, **payload})
    return lambda kind, payload: opened[key_of(kind, payload)]


def key_of(kind: str, payload: Mapping[str, Any]) -> str:
    """A reference as a text that is the same for the same reference."""
    return json.dumps([kind, payload], sort_keys=True)
