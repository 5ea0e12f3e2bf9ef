"""Reads from an encoded value, without decoding it, the tasks, groups, Objects, Views and blobs it refers to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from aaiclick.orchestration.rules.values.plain_kinds import BUILD

CARRIED = "schema"
"""The field of a task's references that has the schema of the table; people are not shown it."""

FIXED = "fixed"
"""The field of references to tables that do not change any more, since their result is remembered; people are not shown
it either."""

REMEMBERED_CHARS = 2_000
REMEMBERED_MAX = 2_048


def mentions_objects(text: str | None) -> bool:
    """Return whether an encoded text may refer to Objects, Views or blobs: a quick search, which may err to True."""
    return text is not None and ('"object"' in text or '"view"' in text or '"blob"' in text)


def marks_of(text: str) -> Sequence[tuple[str, object]]:
    """Return what an encoded value or encoded kwargs refer to, as (kind, payload).

    Kinds are task, group, object, view and blob.
    """
    if not ('"marks"' in text or mentions_objects(text)):
        return ()
    return _marks_again(text) if len(text) <= REMEMBERED_CHARS else _marks(text)


def _marks(text: str) -> Sequence[tuple[str, object]]:
    data = json.loads(text)
    found: list[tuple[str, object]] = []
    for envelope in [data] if type(data.get("object_type")) is str else data.values():
        kind = envelope.pop("object_type")
        if kind == "pyobj":
            found += [(kind, payload[0]) for _, kind, *payload in envelope.get("marks", ()) if kind not in BUILD]
        elif kind == "blob":
            refers = envelope.pop("refers", ())
            found.append((kind, envelope))
            found += [(kind, payload) for kind, payload in refers]
        else:
            found.append((kind, envelope))
    return tuple(found)


_marks_again = lru_cache(maxsize=REMEMBERED_MAX)(_marks)
"""Cached: claiming, narrowing, running and reporting a task each ask about the same short texts."""


def without_schema(reference: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reference as people see it."""
    return {name: value for name, value in reference.items() if name not in (CARRIED, FIXED)}


def as_fixed(text: str) -> str | None:
    """Return an encoded value whose references to tables say that these do not change any more.

    None: the value is stored in a table itself, and has references in it, which are not rewritten.
    """
    if not mentions_objects(text):
        return text
    data = json.loads(text)
    if data["object_type"] == "blob":
        return None if data.get("refers") else text
    if data["object_type"] == "pyobj":
        for _, kind, *payload in data.get("marks", ()):
            if kind in ("object", "view"):
                payload[0][FIXED] = True
    elif data["object_type"] in ("object", "view"):
        data[FIXED] = True
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
