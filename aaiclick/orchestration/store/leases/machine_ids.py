"""Machine ids: time windows in which a process may make ids with a ten-bit machine id (docs/decisions/0003-ids.md)."""

from __future__ import annotations

import random

from sqlalchemy import insert, select, update

from aaiclick.id_grants import ALLOTTED_MACHINE_IDS, Grant
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import machine_ids

WINDOW_MS = 2 * 60 * 1000
"""The length of a window, in milliseconds. A process asks for its next window before this one ends."""


async def now_ms(session: Session) -> int:
    """The database's time in milliseconds."""
    return int((await session.now()).timestamp() * 1000)


async def take_window(session: Session) -> Grant | None:
    """Reserve a window from now on, for the machine id whose last window ended first; None if all are in use.

    Rows that another transaction has locked are skipped. If no known machine id is free, one that was never used is
    added.
    """
    row = await session.first(
        select(machine_ids.c.machine_id, machine_ids.c.high_water_ms)
        .order_by(machine_ids.c.high_water_ms, machine_ids.c.machine_id)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    moment_ms = await now_ms(session)
    if row is not None and row.high_water_ms <= moment_ms:
        from_ms, machine_id = moment_ms, row.machine_id
        await session.run(
            update(machine_ids).where(machine_ids.c.machine_id == machine_id).values(high_water_ms=from_ms + WINDOW_MS)
        )
        return Grant(machine_id, from_ms, from_ms + WINDOW_MS)
    return await _take_new(session, moment_ms)


async def _take_new(session: Session, now_ms: int) -> Grant | None:
    """Reserve a window for a machine id that has no row yet; None if all have one.

    The primary key refuses one of two processes that add the same id; the caller tries again.
    """
    used = {row.machine_id for row in await session.rows(select(machine_ids.c.machine_id))}
    unused = [candidate for candidate in ALLOTTED_MACHINE_IDS if candidate not in used]
    if not unused:
        return None
    free = random.choice(unused)  # concurrent processes rarely pick the same  # noqa: S311 (no secret)
    await session.run(insert(machine_ids).values(machine_id=free, high_water_ms=now_ms + WINDOW_MS))
    return Grant(free, now_ms, now_ms + WINDOW_MS)
