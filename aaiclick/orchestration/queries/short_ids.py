"""Ids typed by people: a whole id, or its last digits (at least four) if no other id of that kind ends with them."""

from __future__ import annotations

import re
from typing import Literal

from aaiclick.errors import InputError, NotFound
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.rules.validation import ID_MAX, check_id, shorten
from aaiclick.orchestration.store.reading import short_ids as store

Kind = Literal["backfill", "job", "task", "token", "worker"]

DIGITS_MIN = 4
CANDIDATES_SHOWN = 5

_HINTS = {kind: f"See: aaiclick {kind} list" for kind in ("job", "token", "worker")} | {
    "backfill": "See: aaiclick registered-job backfills NAME",
    "task": "See: aaiclick job graph JOB --json",
}


async def find_id(kind: Kind, text: str) -> int:
    """Return the id that equals the text, or the only one that ends with it.

    Raise NotFound if there is none, and InputError with candidates if there are several. A whole id costs one lookup
    by primary key, a shortened one a scan over all ids of its kind.
    """
    if not re.fullmatch("[0-9]{1,19}", text):
        raise InputError(field="ID", value=shorten(text, 50), rule="an id must be a whole number", hint=_HINTS[kind])
    if not text.startswith("0"):
        check_id(int(text), f"{kind} id")
    async with connected() as database:
        if not text.startswith("0"):
            whole = int(text)
            if await database.read(lambda session: store.is_there(session, kind, whole)):
                return whole
        if len(text) < DIGITS_MIN:
            rule = f"it must be an id, or at least its last {DIGITS_MIN} digits"
            raise InputError(field="ID", value=text, rule=rule, hint=_HINTS[kind])
        found: list[int] = []
        if len(text) < len(str(ID_MAX)):
            found = await database.read(lambda session: store.find_by_end(session, kind, text, CANDIDATES_SHOWN + 1))
    if len(found) == 1:
        return found[0]
    if not found:
        raise NotFound(what=kind, field="id", value=text, hint=_HINTS[kind])
    named = ", ".join(map(str, sorted(found[:CANDIDATES_SHOWN]))) + (", …" if len(found) > CANDIDATES_SHOWN else "")
    hint = f"Write more of its last digits: {named}."
    raise InputError(field="ID", value=text, rule=f"more than one {kind} id ends with these digits", hint=hint)
