"""References to values that are too large for the state, whose encoded text is stored in ClickHouse as a blob.

The reference repeats what the text refers to, so that it need not be read to find these tasks, groups and Objects.
"""

from __future__ import annotations

import json
from typing import Any

from aaiclick.errors import ValueTooLarge
from aaiclick.orchestration.rules.secrets import mentions_secrets
from aaiclick.orchestration.rules.values.encoding import NODE_BYTES
from aaiclick.orchestration.rules.values.reference_marks import marks_of
from aaiclick.orchestration.rules.values.walk import SIZE_SETTING


def weight_of(text: str) -> int:
    """Return the bytes of an encoded text that count against the limit; references to tasks and groups do not count."""
    size = len(text) if text.isascii() else len(text.encode())
    return size - NODE_BYTES * sum(kind in ("task", "group") for kind, _ in marks_of(text))


def is_too_large(text: str, bytes_max: int) -> bool:
    """Return whether an encoded text is too large for the state."""
    return 4 * len(text) > bytes_max and weight_of(text) > bytes_max


def refuse_large(text: str, path: str, bytes_max: int) -> None:
    """Raise ValueTooLarge if the text is too large; for values from outside, for which no blob is made."""
    if is_too_large(text, bytes_max):
        raise ValueTooLarge(path=path, size=weight_of(text), limit=bytes_max, setting=SIZE_SETTING)


def reference_to(text: str, table: str) -> dict[str, Any]:
    """Return the reference that replaces the text of one value, which is stored in this table."""
    found: dict[str, Any] = {"object_type": "blob", "table": table, "size": len(text.encode())}
    if refers := [[kind, payload] for kind, payload in marks_of(text)]:
        found["refers"] = refers
    if mentions_secrets(text):
        found["secret"] = True  # so that `mentions_secrets` finds it without reading the blob
    return found


def value_with(text: str, table: str) -> str:
    """Return the text of a reference to a value that is stored in this table."""
    return _written(reference_to(text, table))


def large_arguments(text: str, bytes_max: int) -> dict[str, str]:
    """Return the arguments, name and text, that must become blobs so that the rest is small enough; largest first."""
    texts = {name: _written(envelope) for name, envelope in json.loads(text).items()}
    chosen: dict[str, str] = {}
    left = weight_of(text)
    for name in sorted(texts, key=lambda name: -len(texts[name])):
        if left <= bytes_max:
            break
        chosen[name] = texts[name]
        left -= weight_of(texts[name])
    return chosen


def arguments_with(text: str, tables: dict[str, str]) -> str:
    """Return the text of arguments in which these names are replaced by references to these tables."""
    envelopes = json.loads(text)
    for name, table in tables.items():
        envelopes[name] = reference_to(_written(envelopes[name]), table)
    return _written(envelopes)


def _written(envelope: object) -> str:
    return json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))
