"""Windows of time in which a process may make ids."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.exc import IntegrityError

from aaiclick.id_grants import ALLOTTED_MACHINE_IDS, LocalSlots
from aaiclick.ids import ROUND_TRIP_S_MAX, _maker, granted_until_ms, id_time, new_id, set_id_source
from aaiclick.orchestration.coordinator import machine_ids
from aaiclick.orchestration.coordinator.machine_ids import provide_ids
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.leases.machine_ids import WINDOW_MS, now_ms, take_window
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import machine_ids as table
from tests.support import warm

servers = pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)


@pytest.fixture(autouse=True)
def own_source():
    """Whatever a test does to where ids come from ends with it."""
    yield
    set_id_source(None)


@pytest.fixture
async def database(migrated_sql_url):
    opened = await Database.open(migrated_sql_url)
    yield opened
    await opened.close()


@servers
async def test_eight_who_connect_at_once_get_eight_machine_ids(database):
    grants = await asyncio.gather(*(_window(database) for _ in range(8)))
    assert len({grant.machine_id for grant in grants}) == 8


async def _window(database: Database):
    """As `provide_ids` does: two may reach for the same unused machine id, and one tries again."""
    while True:
        try:
            return await database.transact(take_window)
        except IntegrityError:
            continue


@servers
async def test_a_window_is_never_given_twice_even_if_the_servers_clock_goes_back(database):
    first = await database.transact(take_window)
    assert first is not None
    ahead = first.until_ms + 3_600_000

    async def set_clock_back(session: Session) -> None:
        # as seen from a clock that was an hour ahead when it wrote this
        await session.run(update(table).values(high_water_ms=ahead))

    await database.transact(set_clock_back)
    second = await database.transact(take_window)
    assert second is not None
    assert second.machine_id != first.machine_id


@servers
async def test_a_machine_id_whose_window_is_over_is_used_again_behind_it(database):
    first = await database.transact(take_window)
    assert first is not None

    async def let_time_pass(session: Session) -> None:
        await session.run(update(table).values(high_water_ms=first.from_ms - 10_000))

    await database.transact(let_time_pass)
    second = await database.transact(take_window)
    assert second is not None
    assert second.machine_id == first.machine_id
    assert second.from_ms >= first.from_ms


@servers
async def test_when_all_are_in_use_there_is_none_and_ids_go_on_being_made(database):
    async def use_all(session: Session) -> None:
        until_ms = int((await session.now()).timestamp() * 1000) + WINDOW_MS
        await session.insert(table, [{"machine_id": m, "high_water_ms": until_ms} for m in ALLOTTED_MACHINE_IDS])

    await database.transact(use_all)
    assert await database.transact(take_window) is None
    await provide_ids(database)
    assert new_id() > 0


@servers
async def test_connecting_again_and_again_takes_one_window(database):
    for _ in range(5):
        await provide_ids(database)
    used = await database.read(lambda session: session.scalar(select(func.count()).select_from(table)))
    assert used == 1
    assert granted_until_ms() > 0


@servers
async def test_of_ten_who_ask_at_once_one_asks_for_the_whole_process(database, monkeypatch):
    """Ten hearts of one process may find at once that the window is soon over."""
    until = [await database.read(now_ms) + WINDOW_MS // 4]
    monkeypatch.setattr(machine_ids, "granted_until_ms", lambda: until[-1])
    monkeypatch.setattr(machine_ids, "offer_grant", lambda grant: until.append(grant.until_ms))
    await asyncio.gather(*(provide_ids(database) for _ in range(10)))
    counted = await database.read(lambda session: session.scalar(select(func.count()).select_from(table)))
    assert (counted, len(until)) == (1, 2)
    assert not machine_ids._asking


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
async def test_on_sqlite_the_slots_beside_the_file_are_used(database):
    await provide_ids(database)
    assert isinstance(_maker.source, LocalSlots)


@servers
async def test_a_time_that_was_long_on_its_way_is_asked_for_again(database, monkeypatch):
    """It was believed at first, and ids were ahead by half of what it took: more than a second on a busy machine."""
    set_id_source(None)  # no time is known
    waits_s = [3 * ROUND_TRIP_S_MAX, 2 * ROUND_TRIP_S_MAX]
    asked: list[float] = []

    async def slow_answer(session: Session) -> int:
        answer = await in_time(session)
        asked.append(time.monotonic())
        if waits_s:
            await asyncio.sleep(waits_s.pop())
        return answer

    in_time = now_ms
    monkeypatch.setattr(machine_ids, "now_ms", slow_answer)
    await database.read(machine_ids._learn_time)
    assert (len(asked), waits_s) == (3, [])
    told = id_time(new_id())
    assert abs(told - await database.read(lambda session: session.now())) < timedelta(seconds=ROUND_TRIP_S_MAX)


@servers
async def test_where_every_answer_is_slow_the_time_is_asked_for_a_few_times_only(database, monkeypatch):
    answers: list[int] = []

    async def slow_answer(session: Session) -> int:
        answers.append(await in_time(session))
        return answers[-1]

    in_time = now_ms
    monkeypatch.setattr(machine_ids, "now_ms", slow_answer)
    monkeypatch.setattr(machine_ids, "ROUND_TRIP_S_MAX", -1.0)
    assert await database.read(machine_ids._learn_time) == answers[-1]
    assert len(answers) == machine_ids.ASKS_MAX


WRONG = """
import asyncio, sys
from tests.support.wrong_clock import set_clock_wrong

set_clock_wrong(float(sys.argv[1]))

from aaiclick.ids import new_id
from aaiclick.orchestration.context import orch_context

async def main():
    async with orch_context():
        print("connected", flush=True)
        sys.stdin.readline()
        print(new_id(), flush=True)

asyncio.run(main())
"""


@servers
@pytest.mark.parametrize("machine_id", [None, "600"])
async def test_ids_of_processes_with_wrong_clocks_follow_creation(database, machine_id):
    """Those that are set by hand too, whose slot is a file beside a clock that is hours off."""
    surroundings = os.environ | {"AAICLICK_SQL_URL": database.url, "PYTHONPATH": str(Path(__file__).parents[4])}
    if machine_id is not None:
        surroundings["AAICLICK_MACHINE_ID"] = machine_id
    await provide_ids(database)
    made: list[int] = []
    for wrong_by in ("-7200", "7200"):
        child = await warm.create_subprocess_exec(
            *(sys.executable, "-c", WRONG, wrong_by),
            env=surroundings,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        assert await child.stdout.readline() == b"connected\n"
        made.append(new_id())
        child.stdin.write(b"\n")
        made.append(int(await child.stdout.readline()))
        made.append(new_id())
        await child.wait()
    second = timedelta(seconds=1)
    assert all(id_time(later) > id_time(earlier) - second for earlier, later in pairwise(made)), [*map(id_time, made)]
