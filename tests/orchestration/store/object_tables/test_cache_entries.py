"""Entries of remembered results: what is remembered, what replaces what, and what goes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from aaiclick.config import reset_settings
from aaiclick.orchestration.models import CacheKey
from aaiclick.orchestration.rules.values.encoding import encode_value
from aaiclick.orchestration.store.definitions.cache_tables import cache_entries
from aaiclick.orchestration.store.object_tables.cache_entries import Made, find_entry, is_lasting, remember
from aaiclick.orchestration.store.reading.cached_results import list_entries, remove_chosen
from aaiclick.orchestration.store.retention.cache_ages import remove_expired
from tests.support.band import SERVERS, band
from tests.support.orchestra import LONG_AGO, Orchestra
from tests.support.tables import result_of

__all__ = ["band"]

KEY = CacheKey("d" * 64, "some.module.t", "i" * 64, ttl_s=60.0)
FIRST, SECOND = (Made(1, task, 1, encode_value(task, bytes_max=100), KEY) for task in (5, 6))


async def write(band: Orchestra, *made: Made) -> None:
    await band.database.transact(lambda session: remember(session, made))


async def tasks_of(band: Orchestra) -> list[int]:
    found = await band.database.read(lambda session: list_entries(session, None, 100, None))
    return [each.task_id for each in found]


async def age(band: Orchestra) -> None:
    await band.database.transact(lambda session: session.run(update(cache_entries).values(expires_at=LONG_AGO)))


async def test_what_is_there_and_in_time_stays_unless_it_is_refreshed(band: Orchestra) -> None:
    await write(band, FIRST)
    await write(band, SECOND)
    assert await tasks_of(band) == [5]
    await write(band, SECOND._replace(key=replace(KEY, refresh=True)))
    assert await tasks_of(band) == [6]
    await age(band)
    await write(band, FIRST)
    assert await tasks_of(band) == [5]


async def test_an_entry_is_found_until_its_time_is_over(band: Orchestra) -> None:
    await write(band, FIRST)
    found = await band.database.read(lambda session: find_entry(session, KEY.digest))
    assert found is not None
    assert (found.task_id, found.entrypoint, found.result) == (5, "some.module.t", FIRST.result_json)
    assert found.expires_at - found.created_at == timedelta(seconds=60)
    assert await band.database.transact(remove_expired) == 0
    await age(band)
    assert await band.database.read(lambda session: find_entry(session, KEY.digest)) is None
    assert await band.database.transact(remove_expired) == 1


@pytest.mark.parametrize(("setting", "lives"), [("5", timedelta(seconds=5)), ("0", None)])
async def test_without_a_ttl_the_setting_counts(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch, setting: str, lives: timedelta | None
) -> None:
    monkeypatch.setenv("AAICLICK_CACHE_TTL", setting)
    reset_settings()
    await write(band, FIRST._replace(key=replace(KEY, ttl_s=None)))
    (row,) = await band.rows(select(cache_entries))
    assert (row.expires_at and row.expires_at - row.created_at) == lives


def test_only_results_that_mean_the_same_later_are_lasting() -> None:
    assert is_lasting("null")
    assert is_lasting(encode_value({"a": ["object", (1, 2)]}, bytes_max=1000))
    assert is_lasting(result_of("t5_1_1", "t5_1_2"))
    assert not is_lasting(result_of("t5_1_1", "p_named"))
    assert not is_lasting(result_of("c5_1"))
    for kind in ("task", "group", "failed"):
        assert not is_lasting(f'{{"object_type":"pyobj","value":null,"marks":[[[],"{kind}",5]]}}')


async def test_a_result_whose_table_is_not_known_is_not_remembered(band: Orchestra) -> None:
    await write(band, FIRST._replace(result_json=result_of("t5_1_1")))
    assert await tasks_of(band) == []


async def test_entries_are_listed_and_removed_by_function_and_one_by_one(band: Orchestra) -> None:
    keys = [replace(KEY, digest=f"{place}" * 64, entrypoint=f"m.{'ab'[place % 2]}") for place in range(4)]
    await write(band, *(FIRST._replace(task_id=place, key=key) for place, key in enumerate(keys)))
    page = await band.database.read(lambda session: list_entries(session, None, 3, None))
    rest = await band.database.read(lambda session: list_entries(session, None, 3, page[-1].id))
    assert [each.id for each in (*page, *rest)] == sorted((each.id for each in (*page, *rest)), reverse=True)
    named = await band.database.read(lambda session: list_entries(session, "m.a", 10, None))
    assert {each.task_id for each in named} == {0, 2}
    assert [each.size for each in named] == [len(FIRST.result_json)] * 2
    entry = named[0].id
    assert await band.database.transact(lambda session: remove_chosen(session, 10, entry_id=entry)) == 1
    assert await band.database.transact(lambda session: remove_chosen(session, 10, entrypoint="m.a")) == 1
    assert await band.database.transact(lambda session: remove_chosen(session, 1)) == 1
    assert len(await tasks_of(band)) == 1


@SERVERS
async def test_of_many_at_once_one_is_remembered(band: Orchestra, dialect: str) -> None:
    keys = [replace(KEY, digest=name * 64) for name in "ab"]
    batches = [[FIRST._replace(task_id=task, key=key) for key in keys] for task in range(5, 11)]
    await asyncio.gather(*(write(band, *batch) for batch in batches))
    assert len(await tasks_of(band)) == 2
