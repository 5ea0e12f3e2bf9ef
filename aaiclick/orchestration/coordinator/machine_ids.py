"""Grants to make unique ids. Each process takes a window of up to two minutes ahead, by the database's time."""

from __future__ import annotations

import asyncio
import time

from aaiclick.clock import SYSTEM_CLOCK
from aaiclick.id_grants import Grant, lend_slot, wall_ms
from aaiclick.ids import ROUND_TRIP_S_MAX, granted_until_ms, offer_grant, slots_directory, tell_time, use_slots_of
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.leases.machine_ids import WINDOW_MS, now_ms, take_window
from aaiclick.orchestration.store.rejections import is_duplicate
from aaiclick.orchestration.store.session import Session
from aaiclick.urls import sqlite_file

TRIES = 20
"""How often to try: two processes may take the same unused machine id, and the primary key refuses one of them."""

ASKS_MAX = 5
"""How often to ask for the time while answers are slow: an answer is wrong by up to half of its round trip."""

_asking = False


async def provide_ids(database: Database) -> None:
    """Give this process the right to make unique ids, by the database's time.

    With SQLite it is a slot beside the file. With a server it is a window of a machine id, renewed when less than half
    of it is left; one caller renews it for the whole process.
    """
    file = sqlite_file(database.url)
    if file is not None:
        use_slots_of(file)
        return
    global _asking
    moment_ms = await database.read(_learn_time)
    left_ms = granted_until_ms() - moment_ms  # another caller may have renewed it meanwhile
    if left_ms >= WINDOW_MS // 2 or (_asking and left_ms > 0):  # another caller is renewing it
        return
    _asking = True
    try:
        await _take(database)
    finally:
        _asking = False


async def lend_ids(database: Database, until_ms: int) -> tuple[int, Grant | None]:
    """Return the time in milliseconds, and a window for a process elsewhere whose windows end at `until_ms`.

    None: it has enough, or no machine id is free. With SQLite the window is one of a slot that no process holds.
    """
    file = sqlite_file(database.url)
    moment_ms = wall_ms(SYSTEM_CLOCK) if file is not None else await database.read(now_ms)
    if until_ms - moment_ms >= WINDOW_MS // 2:
        return moment_ms, None
    if file is not None:
        return moment_ms, await asyncio.to_thread(lend_slot, slots_directory(file), moment_ms, WINDOW_MS)
    return moment_ms, await _window(database)


async def _take(database: Database) -> None:
    grant = await _window(database)
    if grant is not None:
        offer_grant(grant)


async def _window(database: Database) -> Grant | None:
    for attempt in range(1, TRIES + 1):
        try:
            return await database.transact(take_window)
        except Exception as error:
            if attempt == TRIES or not is_duplicate(error):
                raise
    raise AssertionError("the last try returns or raises")


async def _learn_time(session: Session) -> int:
    """Pass the database's time to the id maker and return it, in milliseconds. Slow answers are asked for again."""
    asks = 0
    while True:
        asked_at_s = time.monotonic()
        moment_ms = await now_ms(session)
        tell_time(moment_ms, asked_at_s)
        asks += 1
        if time.monotonic() - asked_at_s <= ROUND_TRIP_S_MAX or asks == ASKS_MAX:
            return moment_ms
