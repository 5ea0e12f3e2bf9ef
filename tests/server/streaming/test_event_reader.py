"""One reader for all streams: from the database into its window, without a gap and without hearing anything twice."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import insert

from aaiclick.errors import BackendUnreachable
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.queries.event_feed import newest_event, read_feed
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events
from aaiclick.server.streaming import event_reader, event_window
from aaiclick.server.streaming.event_reader import EventReader
from tests.support.front_door import local, state

__all__ = ["local", "state"]


class Setting:
    """A reader that runs, and the database it reads."""

    def __init__(self, reader: EventReader, running: asyncio.Task[None], database: Database) -> None:
        self.reader = reader
        self.running = running
        self.database = database

    async def until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():  # noqa: ASYNC110 (the reader tells only its listeners)
            await asyncio.sleep(0.001)

    async def note(self, count: int = 1, job_id: int = 1) -> None:
        for _ in range(count):
            await self.database.transact(lambda session: note(session, job_id))


async def note(session: Session, job_id: int = 1) -> None:
    row = {"job_id": job_id, "move": "create", "status": "pending", "at": await session.now()}
    await session.run(insert(events).values(**row))


@asynccontextmanager
async def opened() -> AsyncIterator[Setting]:
    async with connected() as database:
        reader = EventReader()
        running = asyncio.create_task(reader.run())
        try:
            yield Setting(reader, running, database)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_reader, "LOOK_EVERY_S", 0.005)


class Ear:
    """Somebody who listens from a place on."""

    def __init__(self, reader: EventReader, after: int, job_id: int | None = None) -> None:
        self.reader, self.after, self.job_id = reader, after, job_id
        self.heard: list[int] = []

    async def hear(self) -> None:
        """One piece more."""
        piece = await self.reader.next_piece(self.after, job_id=self.job_id, wait_s=30)
        assert piece is not None
        part, self.after = piece.part(self.after, self.job_id), piece.cursor
        self.heard += [int(each) for each in re.findall(rb"id: (\d+)\nevent", part)]

    async def hear_until(self, last: int) -> list[int]:
        while self.after < last:
            await self.hear()
        return self.heard


async def test_from_the_database_into_the_window_without_a_gap(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes from anywhere, while more and more happens, hears each event behind his place once, in order."""
    monkeypatch.setattr(event_reader, "PAGE", 3)
    async with opened() as setting:
        await setting.note()
        first = await newest_event()
        await setting.note(10)
        with setting.reader.listening():
            hearing: list[asyncio.Task[list[int]]] = []
            for turn in range(10):
                ear = Ear(setting.reader, first + turn)
                hearing.append(asyncio.create_task(ear.hear_until(first + 20)))
                await setting.note()
            heard = await asyncio.gather(*hearing)
        assert heard == [list(range(first + turn + 1, first + 21)) for turn in range(10)]


async def test_the_joint_itself(local: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """He reads from the database, and what comes while he does is in the window too: he hears it once."""
    async with opened() as setting:
        await setting.note(3)
        ear = Ear(setting.reader, 0)
        with setting.reader.listening():
            await Ear(setting.reader, 2).hear()  # the window begins here, behind 3
            assert setting.reader.window.start == 3
            read = read_feed

            async def late(*asked: Any, **more: Any) -> Any:
                """4 comes before he reads, and the window has it before he has it; 5 after."""
                monkeypatch.setattr(event_reader, "read_feed", read)
                await setting.note()
                await Ear(setting.reader, 3).hear()
                page = await read(*asked, **more)
                await setting.note()
                return page

            by_reader = event_reader._read

            async def by_ear(after: int, job_id: int | None = None) -> Any:
                if after == 0:
                    monkeypatch.setattr(event_reader, "read_feed", late)
                return await by_reader(after, job_id)

            monkeypatch.setattr(event_reader, "_read", by_ear)
            await ear.hear()
            assert ear.heard == [1, 2, 3, 4]
            assert setting.reader.window.end >= 4
            assert await ear.hear_until(5) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)
async def test_an_event_that_commits_late_is_heard_on_both_sides_of_the_joint(state: str) -> None:
    async with opened() as setting:
        await setting.note()
        start = await newest_event()
        inserted, go_on = asyncio.Event(), asyncio.Event()

        async def slow(session: Session) -> None:
            await note(session)
            inserted.set()
            await go_on.wait()

        late = asyncio.create_task(setting.database.transact(slow))
        await inserted.wait()
        await setting.note()
        with setting.reader.listening():
            before, after = Ear(setting.reader, start), Ear(setting.reader, start + 2)
            hearing = asyncio.create_task(before.hear_until(start + 3))
            await setting.until(lambda: setting.reader.window.start == start + 2)
            await setting.note()
            assert await after.hear_until(start + 3) == [start + 3]  # whoever came later
            assert before.heard == []  # it may still come
            go_on.set()
            await late
            assert await hearing == [start + 1, start + 2, start + 3]


async def test_who_is_slow_reads_from_the_database_and_costs_no_memory(
    local: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_window, "PIECES_MAX", 2)
    async with opened() as setting:
        with setting.reader.listening():
            slow, quick = Ear(setting.reader, 0), Ear(setting.reader, 0)
            for place in range(1, 9):
                await setting.note()
                await quick.hear_until(place)
            kept = setting.reader.window
            assert (kept.start, kept.end, len(kept._pieces)) == (6, 8, 2)
            await slow.hear()  # all that he missed, and more than there is room for
            assert slow.heard == list(range(1, 9))
            await setting.note()
            assert await slow.hear_until(9) == await quick.hear_until(9) == list(range(1, 10))


async def test_those_who_are_in_the_window_ask_the_database_nothing(
    local: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[Any] = set()
    read = read_feed

    async def noted(*given: Any, **more: Any) -> Any:
        asked.add(asyncio.current_task())
        return await read(*given, **more)

    monkeypatch.setattr(event_reader, "read_feed", noted)
    async with opened() as setting:
        asleep = setting.reader.window
        with setting.reader.listening():
            await setting.until(lambda: setting.reader.window is not asleep)
            ears = [Ear(setting.reader, 0, job_id) for job_id in (None, 1, 2) * 10]
            for place in range(1, 4):
                await setting.note(job_id=place)
                await asyncio.gather(*(asyncio.create_task(ear.hear_until(place)) for ear in ears))
        assert asked == {setting.running}
        assert {(ear.job_id, *ear.heard) for ear in ears} == {(None, 1, 2, 3), (1, 1), (2, 2)}


async def test_it_sleeps_while_nobody_listens_and_begins_with_what_is_new(
    local: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0
    read = read_feed

    async def counted(*given: Any, **more: Any) -> Any:
        nonlocal reads
        reads += 1
        return await read(*given, **more)

    asleep_again = asyncio.Event()
    follow = EventReader._follow

    async def followed(reader: EventReader) -> None:
        await follow(reader)
        asleep_again.set()

    monkeypatch.setattr(event_reader, "read_feed", counted)
    monkeypatch.setattr(EventReader, "_follow", followed)
    async with opened() as setting:
        await asyncio.sleep(0.05)
        assert reads == 0
        with setting.reader.listening():
            await setting.note()
            await Ear(setting.reader, 0).hear()
        await asleep_again.wait()
        asleep = reads
        await setting.note(5)
        await asyncio.sleep(0.05)
        assert reads == asleep
        with setting.reader.listening():
            ear = Ear(setting.reader, 1)
            assert await ear.hear_until(6) == [2, 3, 4, 5, 6]
            # nobody need hear again what happened while it slept
            await setting.until(lambda: setting.reader.window.start == 6)


async def test_when_the_database_goes_away_who_waits_hears_of_it_and_who_comes_again_misses_nothing(
    local: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, gone = read_feed, asyncio.Event()

    async def broken(*given: Any, **more: Any) -> Any:
        if gone.is_set():
            raise BackendUnreachable(url="postgresql://h/d", cause="it has gone")
        return await read(*given, **more)

    monkeypatch.setattr(event_reader, "read_feed", broken)
    async with opened() as setting:
        with setting.reader.listening():
            ear = Ear(setting.reader, 0)
            await setting.note()
            await ear.hear()
            gone.set()
            for each in (ear, Ear(setting.reader, 1)):
                with pytest.raises(BackendUnreachable):
                    await each.hear()
            await setting.note()
            gone.clear()
            assert await ear.hear_until(2) == [1, 2]


async def test_nothing_comes_for_a_while(local: None) -> None:
    async with opened() as setting:
        with setting.reader.listening():
            assert await setting.reader.next_piece(0, wait_s=0.02) is None
