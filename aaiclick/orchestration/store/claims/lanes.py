"""Lanes: each set of needs that tasks have of their worker gets a number, which never changes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import select

from aaiclick.orchestration.rules.lanes import PLAIN, canonical
from aaiclick.orchestration.store.definitions.fleet_tables import lanes
from aaiclick.orchestration.store.insert_missing import insert_missing
from aaiclick.orchestration.store.object_tables.references import in_batches
from aaiclick.orchestration.store.session import Session


async def intern_lanes(session: Session, needs: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the lane of each of these needs; new needs get a new lane, and empty ones the plain lane.

    A transaction that interns the same new needs waits until this one ends. One that holds other locks should therefore
    not call this. The row can be made in an earlier transaction: a lane that no task uses does no harm.
    """
    texts = [canonical(each) if each else "" for each in needs]
    digests = {text: hashlib.sha256(text.encode()).hexdigest() for text in texts if text}
    known = await _read_known(session, digests.values())
    new = [{"digest": digest, "needs": text} for text, digest in digests.items() if digest not in known]
    if new:
        await insert_missing(session, lanes, sorted(new, key=lambda row: row["digest"]))  # in one order: no deadlock
        known = await _read_known(session, digests.values())
    return [known[digests[text]] if text else PLAIN for text in texts]


async def _read_known(session: Session, digests: Iterable[str]) -> dict[str, int]:
    known: dict[str, int] = {}
    for batch in in_batches(sorted(digests)):
        rows = await session.rows(select(lanes.c.digest, lanes.c.id).where(lanes.c.digest.in_(batch)))
        known |= {row.digest: row.id for row in rows}
    return known
