"""Lanes: each set of needs that tasks have of their worker gets a number, which never changes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import select

from aaiclick.errors import AaiclickError
from aaiclick.orchestration.rules.lanes import PLAIN, canonical
from aaiclick.orchestration.store.definitions.fleet_tables import lanes
from aaiclick.orchestration.store.insert_missing import insert_missing
from aaiclick.orchestration.store.object_tables.references import in_batches
from aaiclick.orchestration.store.session import Session


class LanesWanted(AaiclickError):
    """The transaction needs {count} lanes that are not made yet.

    `Database.transact` makes them in a transaction of their own, and begins again.
    """

    def __init__(self, needs: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(count=len(needs))
        self.needs = needs


async def intern_lanes(session: Session, needs: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the lane of each of these needs; new needs get a new lane, and empty ones the plain lane.

    A transaction that interns the same new needs waits until this one ends. One that holds other locks should therefore
    ask `lanes_of` instead.
    """
    texts = [canonical(each) if each else "" for each in needs]
    known = await _read_known(session, texts)
    new = [{"digest": _digest(text), "needs": text} for text in dict.fromkeys(texts) if text and text not in known]
    if new:
        await insert_missing(session, lanes, sorted(new, key=lambda row: row["digest"]))  # in one order: no deadlock
        known = await _read_known(session, texts)
    return [known[text] if text else PLAIN for text in texts]


async def lanes_of(session: Session, needs: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the lane of each of these needs, for a transaction that holds locks: raise LanesWanted if one is new."""
    texts = [canonical(each) if each else "" for each in needs]
    numbers = session.lanes.numbers
    unknown = {text for text in texts if text and text not in numbers}
    for text, lane in (await _read_known(session, unknown)).items() if unknown else ():
        session.lanes.learn(lane, text)
    wanted = {text: each for text, each in zip(texts, needs, strict=True) if text and text not in numbers}
    if wanted:
        raise LanesWanted(list(wanted.values()))
    return [numbers[text] if text else PLAIN for text in texts]


async def needs_of_lanes(session: Session, ids: Iterable[int]) -> Mapping[int, Mapping[str, Any]]:
    """Return the needs of these lanes; those that this process has met are not read. The plain one has none."""
    wanted = {lane for lane in ids if lane != PLAIN}
    unknown = wanted - session.lanes.needs.keys()
    for lane, text in (await read_needs(session, unknown)).items() if unknown else ():
        session.lanes.learn(lane, text)
    return {lane: session.lanes.needs[lane] for lane in wanted if lane in session.lanes.needs}


async def read_needs(session: Session, ids: Iterable[int]) -> dict[int, str]:
    """Return the needs of these lanes, as their canonical texts."""
    found: dict[int, str] = {}
    for batch in in_batches(sorted(ids)):
        rows = await session.rows(select(lanes.c.id, lanes.c.needs).where(lanes.c.id.in_(batch)))
        found |= {row.id: row.needs for row in rows}
    return found


async def _read_known(session: Session, texts: Iterable[str]) -> dict[str, int]:
    """Return the lanes of these texts that there are."""
    text_of = {_digest(text): text for text in texts if text}
    known: dict[str, int] = {}
    for batch in in_batches(sorted(text_of)):
        rows = await session.rows(select(lanes.c.digest, lanes.c.id).where(lanes.c.digest.in_(batch)))
        known |= {text_of[row.digest]: row.id for row in rows}
    return known


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
