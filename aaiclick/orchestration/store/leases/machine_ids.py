"""Windows of time in which a process may make ids with one of the ten-bit machine ids (docs/decisions/0003-ids.md)."""

from __future__ import annotations

import random

from sqlalchemy import insert, select, update

from aaiclick.id_grants import ALLOTTED_MACHINE_IDS, Grant
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import machine_ids

WINDOW_MS = 2 * 60 * 1000
"""How far ahead a machine id is taken; who holds it takes the next window in time."""


async def now_ms(session: Session) -> int:
    """The database's time in milliseconds."""
    return int((await session.now()).timestamp() * 1000)


async def take_window(session: Session) -> Grant | None:
    """A window that follows the last one of the machine id that is free the longest; None if all are in use."""
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
    """A machine id that nobody has used yet."""
    used = {row.machine_id for row in await session.rows(select(machine_ids.c.machine_id))}
    unused = [candidate for candidate in ALLOTTED_MACHINE_IDS if candidate not in used]
    if not unused:
        return None
    free = random.choice(unused)  # of several who ask at once, hardly two want the same  # noqa: S311 (no secret)
    await session.run(insert(machine_ids).values(machine_id=free, high_water_ms=now_ms + WINDOW_MS))
    return Grant(free, now_ms, now_ms + WINDOW_MS)
