"""Windows of time in which a process may make ids with one of the ten-bit machine ids (docs/decisions/0003-ids.md)."""

from __future__ import annotations

import random
import time

from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from aaiclick.id_grants import ALLOTTED_MACHINE_IDS, Grant
from aaiclick.ids import ROUND_TRIP_S_MAX, granted_until_ms, offer_grant, tell_time, use_slots_of
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import machine_ids
from aaiclick.urls import sqlite_file

WINDOW_MS = 2 * 60 * 1000
"""How far ahead a machine id is taken; the heartbeat takes the next window in time."""

TRIES = 20
"""Two processes may reach for the same unused machine id, and the primary key lets one pass."""


ASKS_MAX = 5
"""How often the time is asked for while the answers are slow: one is wrong by up to half of what it took to arrive."""

_asking = False


async def provide_ids(database: Database) -> None:
    """Let this process make ids that no other makes, by the database's time, wherever it runs."""
    file = sqlite_file(database.url)
    if file is not None:
        use_slots_of(file)
        return
    global _asking
    now_ms = await database.read(_learn_time)
    left_ms = granted_until_ms() - now_ms
    if left_ms >= WINDOW_MS // 2 or (_asking and left_ms > 0):  # one asks for the whole process
        return
    _asking = True
    try:
        await _take(database)
    finally:
        _asking = False


async def _take(database: Database) -> None:
    for attempt in range(1, TRIES + 1):
        try:
            grant = await database.transact(take_window)
        except IntegrityError:
            if attempt == TRIES:
                raise
        else:
            if grant is not None:
                offer_grant(grant)
            return


async def _learn_time(session: Session) -> int:
    """Tell the maker of ids the database's time, by an answer that was not long on its way if there is one."""
    asks = 0
    while True:
        asked_at_s = time.monotonic()
        now_ms = await _now_ms(session)
        tell_time(now_ms, asked_at_s)
        asks += 1
        if time.monotonic() - asked_at_s <= ROUND_TRIP_S_MAX or asks == ASKS_MAX:
            return now_ms


async def _now_ms(session: Session) -> int:
    return int((await session.now()).timestamp() * 1000)


async def take_window(session: Session) -> Grant | None:
    """A window that follows the last one of the machine id that is free the longest; None if all are in use."""
    row = await session.first(
        select(machine_ids.c.machine_id, machine_ids.c.high_water_ms)
        .order_by(machine_ids.c.high_water_ms, machine_ids.c.machine_id)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    now_ms = await _now_ms(session)
    if row is not None and row.high_water_ms <= now_ms:
        from_ms, machine_id = now_ms, row.machine_id
        await session.run(
            update(machine_ids).where(machine_ids.c.machine_id == machine_id).values(high_water_ms=from_ms + WINDOW_MS)
        )
        return Grant(machine_id, from_ms, from_ms + WINDOW_MS)
    return await _take_new(session, now_ms)


async def _take_new(session: Session, now_ms: int) -> Grant | None:
    """A machine id that nobody has used yet."""
    used = {row.machine_id for row in await session.rows(select(machine_ids.c.machine_id))}
    unused = [candidate for candidate in ALLOTTED_MACHINE_IDS if candidate not in used]
    if not unused:
        return None
    free = random.choice(unused)  # of several who ask at once, hardly two want the same  # noqa: S311 (no secret)
    await session.run(insert(machine_ids).values(machine_id=free, high_water_ms=now_ms + WINDOW_MS))
    return Grant(free, now_ms, now_ms + WINDOW_MS)
