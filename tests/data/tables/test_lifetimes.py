"""How long tables live: with what refers to them, with their context, and after a crash."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aaiclick.data import Context, Object, data_context
from aaiclick.data.clients.contract import DataClient
from aaiclick.data.clients.tables import ALONE
from aaiclick.data.tables import lifetimes
from aaiclick.data.tables.lifetimes import Lifetime, directory_of, make_anew, new_mark, sweep, sweep_contexts, swept
from aaiclick.errors import DataUnreachable
from tests.support import warm

WAIT_S_MAX = 60.0

MAKES_TABLES_AND_WAITS = """
import asyncio
from aaiclick.data import data_context

async def main():
    async with data_context() as context:
        kept = [await context.create_object_from_value([number]) for number in range(3)]
        named = await context.create_object_from_value([1], name="lifetimes_named")
        print("ready", flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


async def tables_of(client: DataClient) -> set[str]:
    found = await client.rows("SELECT name FROM system.tables WHERE database = currentDatabase()")
    return set(found.columns[0])


def names_in(directory: Path) -> list[str]:
    return os.listdir(directory)


def is_locked(path: Path) -> bool:
    with open(path, "rb+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


async def gone(client: DataClient, table: str) -> None:
    async with asyncio.timeout(WAIT_S_MAX):
        while table in await tables_of(client):  # noqa: ASYNC110  # ClickHouse tells nobody
            await asyncio.sleep(0.01)


async def test_a_table_goes_with_the_last_reference(context: Context, numbers: Object) -> None:
    made = await (numbers * 2)
    table, view = made.table, made.where("value > 2")
    del made
    gc.collect()
    assert await view.data() == [4, 6, 8]
    del view
    gc.collect()
    await gone(context.client, table)


async def test_a_reference_may_be_let_go_on_another_thread(context: Context, numbers: Object) -> None:
    held = [await (numbers * 2)]
    table = held[0].table
    await asyncio.to_thread(held.clear)
    gc.collect()
    await gone(context.client, table)


async def test_tables_go_with_their_context_even_after_an_error(context: Context) -> None:
    left: list[Any] = []

    async def fail() -> None:
        async with data_context() as inner:
            left.append(await inner.create_object_from_value([1]))
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await fail()
    assert left[0].table not in await tables_of(context.client)


async def test_a_table_that_is_kept_stays(context: Context, tmp_path: Path) -> None:
    lifetime = Lifetime(context.client, tmp_path)
    keepers = [await lifetime.new_table(), await lifetime.new_table()]
    for keeper in keepers:
        await context.client.command(f"CREATE TABLE {keeper.table} (a Int8) ENGINE = Memory")
    lifetime.keep(keepers[0].table)
    await lifetime.end()
    assert {keeper.table for keeper in keepers} & await tables_of(context.client) == {keepers[0].table}
    await context.client.command(f"DROP TABLE {keepers[0].table}")
    assert names_in(tmp_path) == []


class Unreachable:
    """Where nothing can be dropped."""

    tables = ALONE

    async def command(self, sql: str) -> None:
        raise DataUnreachable(cause="gone")


async def test_what_cannot_be_dropped_is_left_to_the_next_one(context: Context, tmp_path: Path) -> None:
    lifetime = Lifetime(Unreachable(), tmp_path)  # type: ignore[arg-type]
    keeper = await lifetime.new_table()
    table = keeper.table
    await context.client.command(f"CREATE TABLE {table} (a Int8) ENGINE = Memory")
    del keeper
    gc.collect()
    await asyncio.sleep(0)
    with pytest.raises(DataUnreachable):
        await lifetime.end()
    assert await sweep(context.client, tmp_path) == 1
    assert table not in await tables_of(context.client)


async def test_only_files_that_nobody_holds_are_swept(context: Context, tmp_path: Path) -> None:
    alive = Lifetime(context.client, tmp_path)
    table = (await alive.new_table()).table
    await context.client.command(f"CREATE TABLE {table} (a Int8) ENGINE = Memory")
    for name in ("7.lock", "not a number.lock", "8.txt"):
        (tmp_path / name).touch()
    assert await sweep(context.client, tmp_path) == 0
    assert {"8.txt", "not a number.lock"} < {*names_in(tmp_path)}
    assert "7.lock" not in names_in(tmp_path)
    await alive.end()


async def test_a_context_holds_its_file(context: Context, tmp_path: Path) -> None:
    lifetime = Lifetime(context.client, tmp_path)
    path = tmp_path / names_in(tmp_path)[0]
    assert is_locked(path)
    assert path.stat().st_mode & 0o777 == 0o600
    await lifetime.end()
    assert not path.exists()


async def test_what_it_makes_belongs_to_its_owner_alone(context: Context, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        lifetime = Lifetime(context.client, tmp_path / "contexts" / "one")
    finally:
        os.umask(before)
    places = (tmp_path / "contexts", tmp_path / "contexts" / "one")
    assert [place.stat().st_mode & 0o777 for place in places] == [0o700, 0o700]
    await lifetime.end()


async def test_a_missing_directory_has_nothing_to_sweep(context: Context, tmp_path: Path) -> None:
    assert await sweep(context.client, tmp_path / "never made") == 0


def test_the_tables_of_a_killed_process_go_at_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In processes of their own: one engine is open in this one."""
    surroundings = {**os.environ, "AAICLICK_LOCAL_ROOT": str(tmp_path)}
    first = warm.Popen(
        [sys.executable, "-c", MAKES_TABLES_AND_WAITS], stdout=subprocess.PIPE, env=surroundings, text=True
    )
    assert first.stdout is not None
    assert first.stdout.readline() == "ready\n"
    first.send_signal(signal.SIGKILL)
    first.wait()
    asks = """
import asyncio
from aaiclick.data import data_context

async def main():
    async with data_context() as context:
        print(*(await context.client.rows("SELECT name FROM system.tables WHERE database = 'default'")).columns[0])

asyncio.run(main())
"""
    second = warm.run([sys.executable, "-c", asks], capture_output=True, env=surroundings, text=True, check=True)
    assert second.stdout.split() == ["p_lifetimes_named"]


@pytest.mark.parametrize("name", [None, "lifetimes_lost"])
async def test_a_table_whose_making_was_not_answered_is_made_again(
    context: Context, name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of it is there, perhaps: as if its owner had been killed."""
    command, lost = context.client.command, [1, 1]

    async def losing(sql: str, settings: Any = None) -> None:
        await command(sql, settings)
        if sql.startswith("CREATE") and lost:
            lost.pop()
            raise DataUnreachable(cause="gone")

    monkeypatch.setattr(context.client, "command", losing)
    made = await context.create_object({"a": int}, name=name)
    assert await made.insert({"a": [1]}) == 1
    assert lost == []
    if name:
        await context.delete_object(name)


async def test_a_table_of_another_is_not_taken_for_ours(context: Context) -> None:
    there = await context.create_object_from_value([1], name="lifetimes_theirs")

    async def make() -> None:
        raise DataUnreachable(cause="gone")

    with pytest.raises(DataUnreachable):
        await make_anew(context.client, there.table, new_mark(), make)
    assert await there.data() == [1]
    await context.delete_object("lifetimes_theirs")


async def left_behind(client: DataClient, directory: Path) -> str:
    """A table of a process that died."""
    lifetime = Lifetime(client, directory)
    table = f"{lifetime.prefix}_1"
    await client.command(f"CREATE TABLE {table} (a Int8) ENGINE = Memory")
    lifetime._close_file()
    return table


async def test_whoever_runs_sweeps_what_others_leave(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifetimes, "SWEEP_EVERY_S", 0.01)
    async with swept(context.client, tmp_path):
        await gone(context.client, await left_behind(context.client, tmp_path))
        async with asyncio.timeout(WAIT_S_MAX):
            while names_in(tmp_path):  # noqa: ASYNC110  # the file goes after the table
                await asyncio.sleep(0.01)


async def test_contexts_of_one_process_look_once_in_a_while(context: Context, tmp_path: Path) -> None:
    async with swept(context.client, tmp_path):
        table = await left_behind(context.client, tmp_path)
        async with swept(context.client, tmp_path):
            assert table in await tables_of(context.client)
    assert await sweep(context.client, tmp_path) == 1


async def test_contexts_can_be_swept_without_one(context: Context, ch_url: str) -> None:
    table = await left_behind(context.client, directory_of(ch_url))
    assert await sweep_contexts(ch_url) == 1
    assert table not in await tables_of(context.client)
    assert await sweep_contexts(f"{ch_url}/elsewhere") == 0
