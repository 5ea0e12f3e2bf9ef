"""Lanes: each set of needs that tasks have of whoever runs them gets a number, once and for ever."""

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
    """Return the lane of each of these needs; those that are new get one. To need nothing is the plain lane.

    Whoever interns the same needs at the same time waits for this commit. A transaction that holds other locks should
    therefore not do it: a row that nobody uses harms nobody, so that it can be made in a transaction before.
    """
    texts = [canonical(each) if each else "" for each in needs]
    digests = {text: hashlib.sha256(text.encode()).hexdigest() for text in texts if text}
    known = await _read_known(session, digests.values())
    new = [{"digest": digest, "needs": text} for text, digest in digests.items() if digest not in known]
    if new:
        await insert_missing(session, lanes, sorted(new, key=lambda row: row["digest"]))  # in order: no deadlock
        known = await _read_known(session, digests.values())
    return [known[digests[text]] if text else PLAIN for text in texts]


async def _read_known(session: Session, digests: Iterable[str]) -> dict[str, int]:
    known: dict[str, int] = {}
    for batch in in_batches(sorted(digests)):
        rows = await session.rows(select(lanes.c.digest, lanes.c.id).where(lanes.c.digest.in_(batch)))
        known |= {row.digest: row.id for row in rows}
    return known
