"""Opening the references in results: Objects only inside a `data_context`, large values (blobs) always."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aaiclick.backend import get_ch_url
from aaiclick.orchestration.rules.values.reference_marks import marks_of, mentions_objects, without_schema

Opened = Callable[[str, Any], object]


async def opened_here(texts: Iterable[str | None]) -> Opened | None:
    """Open the references in these texts, and return a function that looks one up; None if nothing refers to tables.

    Without a `data_context`, the function returns references to Objects and Views unopened, as dicts.
    """
    mentioning = [text for text in texts if text is not None and mentions_objects(text)]
    referred = {
        key_of(kind, payload): (kind, payload)
        for text in mentioning
        for kind, payload in marks_of(text)
        if kind in ("object", "view", "blob") and isinstance(payload, dict)
    }
    if not referred:
        return None
    blobs = {key: payload["table"] for key, (kind, payload) in referred.items() if kind == "blob"}
    opened: dict[str, object] = await _texts_of(blobs) if blobs else {}
    opened |= await _objects({key: found for key, found in referred.items() if found[0] != "blob"})

    def find(kind: str, payload: Any) -> object:
        key = key_of(kind, payload)
        return opened.get(key, {"object_type": kind, **without_schema(payload)})

    return find


async def _objects(referred: Mapping[str, tuple[str, dict[str, Any]]]) -> dict[str, object]:
    from aaiclick.data.context import current_context, is_context_around  # here, to keep start-up light

    if not referred or not is_context_around():
        return {}
    context = await current_context()
    return {
        key: await context.open_reference({"object_type": kind, **payload}) for key, (kind, payload) in referred.items()
    }


async def _texts_of(blobs: Mapping[str, str]) -> dict[str, object]:
    from aaiclick.data.clients.opening import close_client, open_client  # here, to keep start-up light
    from aaiclick.data.tables.blobs import read_blob  # here, to keep start-up light

    url = get_ch_url()
    client = await open_client(url)
    try:
        return {key: await read_blob(client, table) for key, table in blobs.items()}
    finally:
        await close_client(url)


def key_of(kind: str, payload: Mapping[str, Any]) -> str:
    """Return a text that is equal for equal references, whatever the order of their fields."""
    return json.dumps([kind, payload["table"] if kind == "blob" else payload], sort_keys=True)
