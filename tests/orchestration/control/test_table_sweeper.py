"""Tables that nobody knows, and when they are looked for."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aaiclick.config import reset_settings, settings
from aaiclick.data import data_context
from aaiclick.data.clients.contract import DataClient
from aaiclick.data.context import Context
from aaiclick.errors import DataRefused, DataUnreachable
from aaiclick.ids import new_id
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.control import table_dropper as tables_module
from aaiclick.orchestration.control import table_sweeper as module
from aaiclick.orchestration.control.control_loop import Control
from aaiclick.orchestration.control.reconcilers import SWEEP_EVERY_S
from aaiclick.orchestration.control.table_sweeper import TableSweeper
from aaiclick.orchestration.rules.states import PreservationMode
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.object_tables.holds import name_of_installation, register_given
from tests.support.clocks import HandClock
from tests.support.front_door import local
from tests.support.shelf import references, tables

__all__ = ["local"]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_SWEEP_AGE", "1")


@pytest.fixture
async def database(local: Path) -> AsyncIterator[Database]:
    async with connected() as database:
        yield database


@pytest.fixture
async def context(database: Database) -> AsyncIterator[Context]:
    async with data_context() as opened:
        yield opened


async def make_table(context: Context, name: str, comment: str) -> str:
    await context.client.command(
        f"CREATE TABLE `{name}` (a Int8) ENGINE = MergeTree ORDER BY tuple() COMMENT '{comment}'"
    )
    return name


def old_id() -> int:
    """As if it had been made an hour ago."""
    return new_id() - (3_600_000 << 22)


async def test_only_tables_of_our_form_and_of_this_installation_that_nobody_knows_go(
    database: Database, context: Context
) -> None:
    """RULINGS 40."""
    ours = f'{{"aaiclick": 1, "installation": "{await database.transact(name_of_installation)}"}}'
    theirs = '{"aaiclick": 1, "installation": "another"}'
    nobodys = await make_table(context, f"t{old_id()}_1_1", ours)
    kept = {
        await make_table(context, f"t{old_id()}_1_2", theirs),
        await make_table(context, f"t{old_id()}_1_3", ""),
        await make_table(context, f"t{old_id()}_1_4", "not JSON " + ours[1:9]),
        await make_table(context, f"t{old_id()}_1", ours),
        await make_table(context, f"p_t{old_id()}_1_1", ours),
        await make_table(context, "t_of_mine", ours),
        await make_table(context, f"t{new_id()}_1_5", ours),
        known := await make_table(context, f"t{old_id()}_1_6", ours),
    }
    await database.transact(lambda session: register_given(session, 1, [known], PreservationMode.NONE))
    assert await TableSweeper(database).sweep() == 1
    left = set(await tables())
    assert nobodys not in left
    assert left >= kept


async def test_many_are_looked_at_a_page_at_a_time(
    database: Database, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LISTED_AT_ONCE", 2)
    ours = f'{{"installation": "{await database.transact(name_of_installation)}"}}'
    maker = old_id()
    names = [await make_table(context, f"t{maker}_1_{number}", ours) for number in range(1, 8)]
    known = names[::3]
    await database.transact(lambda session: register_given(session, 1, known, PreservationMode.NONE))
    assert await TableSweeper(database).sweep() == 4
    assert sorted(await tables()) == sorted(known)


async def test_where_there_never_was_a_table_nothing_is_opened(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(url: str) -> None:
        raise AssertionError("there is nothing to look for")

    monkeypatch.setattr(module, "open_client", refuse)
    assert await TableSweeper(database).sweep() == 0


async def test_an_engine_that_is_away_is_told_once_and_the_next_looks_again(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(url: str) -> None:
        raise DataUnreachable(cause="away")

    await database.transact(name_of_installation)
    monkeypatch.setattr(module, "open_client", away)
    with pytest.raises(DataUnreachable):
        await TableSweeper(database).sweep()
    clock = HandClock()
    control = Control(database, 1, session_s=30, clock=clock)
    with caplog.at_level(logging.WARNING, "aaiclick"):
        for _ in range(3):
            clock.now += SWEEP_EVERY_S
            await control.round()
    assert len([line for line in caplog.messages if "sweep_tables fails" in line]) == 3  # each after ten minutes


async def test_a_table_that_cannot_be_dropped_is_told_and_left(
    database: Database, context: Context, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ours = f'{{"installation": "{await database.transact(name_of_installation)}"}}'
    names = [await make_table(context, f"t{old_id()}_1_{number}", ours) for number in (1, 2)]

    async def refuse(client: DataClient, name: str) -> None:
        if name == names[0]:
            raise DataRefused(cause="too large to drop", code=359)
        await drop(client, name)

    drop = tables_module.drop
    monkeypatch.setattr(tables_module, "drop", refuse)
    sweeper = TableSweeper(database)
    assert [await sweeper.sweep() for _ in range(2)] == [1, 0]
    assert len([line for line in caplog.messages if f"dropping table {names[0]} fails" in line]) == 1
    assert f"table {names[1]} is unknown and is dropped" in caplog.messages


async def test_whoever_leads_sweeps(database: Database, context: Context) -> None:
    ours = f'{{"installation": "{await database.transact(name_of_installation)}"}}'
    nobodys = await make_table(context, f"t{old_id()}_1_1", ours)
    clock = HandClock()
    control = Control(database, 1, session_s=30, clock=clock)
    await control.round()
    assert nobodys in await tables()
    clock.now += SWEEP_EVERY_S
    await control.round()
    assert nobodys not in await tables()
    assert await references() == 0


def test_how_long_tables_are_kept_is_a_setting(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_JOB_TTL", "12.5")
    reset_settings()
    assert (settings().job_ttl_s, settings().sweep_age_s) == (12.5, 1)
