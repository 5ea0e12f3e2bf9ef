"""What open event streams ask of the database: statements, and the server's processor time.

So many streams of one server are open at once, asked through the whole application with one token; for some seconds
nothing happens, then for as long ten events are written each second. The statements are those of the whole process,
without those that write the events.

Run: python -m tests.servers postgres mariadb -- python -m benchmarks.events [sqlite postgres mariadb] [--seconds 20]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from sqlalchemy import event, insert

from aaiclick.config import reset_settings
from aaiclick.orchestration.access.tokens import create_token
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events
from aaiclick.server.app import create_app
from benchmarks.setting import fresh_database, machine

STREAMS = (1, 10, 100)
EVENTS_PER_S = 10


class Listener:
    """Somebody who has a stream open, and counts what it tells."""

    def __init__(self, app: FastAPI, token: str) -> None:
        headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {token}".encode())]
        self.scope: dict[str, Any] = {
            "type": "http",
            "method": "GET",
            "path": "/api/v1/events/stream",
            "query_string": b"",
            "headers": headers,
            "http_version": "1.1",
            "scheme": "http",
            "server": ("localhost", 80),
            "client": ("127.0.0.1", 1),
        }
        self.heard, self.has_asked = 0, False
        self.begun, self.left = asyncio.Event(), asyncio.Event()
        self.listening = asyncio.create_task(app(self.scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if not self.has_asked:
            self.has_asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.heard += message.get("body", b"").count(b"data: ")
        if message.get("body"):
            self.begun.set()


@asynccontextmanager
async def listening(app: FastAPI, token: str, count: int) -> AsyncIterator[list[Listener]]:
    listeners = [Listener(app, token) for _ in range(count)]
    for each in listeners:
        await each.begun.wait()
    try:
        yield listeners
    finally:
        for each in listeners:
            each.left.set()
        await asyncio.gather(*(each.listening for each in listeners))


async def write(database: Database, seconds: float) -> int:
    """Events, one after the other, each in a transaction of its own."""

    async def note(session: Session) -> None:
        row = {"job_id": 1, "move": "create", "status": "pending", "at": await session.now()}
        await session.run(insert(events).values(**row))

    count = int(seconds * EVENTS_PER_S)
    for _ in range(count):
        await database.transact(note)
        await asyncio.sleep(1 / EVENTS_PER_S)
    return count


async def bench(kind: str, seconds: float) -> None:
    async with fresh_database(kind) as url:
        os.environ["AAICLICK_SQL_URL"] = url
        reset_settings()
        app = create_app()
        async with app.router.lifespan_context(app), connected() as database:
            token = (await create_token("bench")).text
            for count in STREAMS:
                await _measure(kind, app, token, database, count, seconds)


async def _measure(kind: str, app: FastAPI, token: str, database: Database, count: int, seconds: float) -> None:
    seen: list[str] = []

    def note(*told: Any) -> None:
        seen.append(told[2])

    engine = getattr(database.engine, "sync_engine", database.engine)
    writer = await Database.open(database.url)
    event.listen(engine, "before_cursor_execute", note)
    try:
        async with listening(app, token, count) as listeners:
            await asyncio.sleep(1)
            seen.clear()
            began, cpu = time.monotonic(), time.process_time()
            await asyncio.sleep(seconds)
            quiet, quiet_cpu, took_s = len(seen), time.process_time() - cpu, time.monotonic() - began
            row = f"| {kind} | {count} | {quiet / took_s:.1f} | {1000 * quiet_cpu / took_s:.0f} |"
            seen.clear()
            began, cpu = time.monotonic(), time.process_time()
            written = await write(writer, seconds)
            busy, busy_cpu, took_s = len(seen), time.process_time() - cpu, time.monotonic() - began
            await asyncio.sleep(8)  # a gap between ids is waited at for five seconds
            assert {each.heard for each in listeners} == {written}, "each hears each event once"
            print(f"{row} {busy / took_s:.1f} | {1000 * busy_cpu / took_s:.0f} |", flush=True)
    finally:
        event.remove(engine, "before_cursor_execute", note)
        await writer.close()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=["sqlite", "postgres", "mariadb"])
    parser.add_argument("--seconds", type=float, default=20.0)
    given = parser.parse_args()
    print(machine())
    print("| database | streams | statements/s, quiet | CPU ms/s | statements/s, 10 events/s | CPU ms/s |")
    print("|---|---|---|---|---|---|")
    for kind in given.kinds:
        await bench(kind, given.seconds)


if __name__ == "__main__":
    asyncio.run(main())
