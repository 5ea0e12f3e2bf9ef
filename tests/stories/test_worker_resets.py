"""The way to the database is cut where it hurts: workers go on, and tell of it in single lines."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.fleet import Fleet, Member, eventually, opened_fleet, servers_only
from tests.support.proxy import Call, Proxy, pass_on, proxied

SETUPS = 6
"""How many set-ups of connections are cut off."""

DATED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (INFO|WARNING) ")


@pytest.fixture
async def road(migrated_sql_url: str, tmp_path: Path) -> AsyncIterator[tuple[Proxy, Fleet]]:
    """A fleet whose workers reach the database through a proxy."""
    async with proxied(migrated_sql_url) as (proxy, url), opened_fleet(migrated_sql_url, tmp_path / "fleet") as fleet:
        fleet.env |= {"AAICLICK_SQL_URL": url, "AAICLICK_SESSION_SECONDS": "20"}
        yield proxy, fleet


def _says_single_lines(said: str) -> None:
    assert [line for line in said.splitlines() if not DATED.match(line)] == []
    for word in ("Traceback", "SQL:", "SELECT", "INSERT", "Background on this error"):
        assert word not in said


def _said(member: Member, words: str) -> bool:
    return words in member.said()


@servers_only
async def test_a_worker_whose_new_connections_are_reset_goes_on(road: tuple[Proxy, Fleet]) -> None:
    proxy, fleet = road
    (worker,) = await fleet.workers(1)
    left = SETUPS

    def judge(call: Call, data: bytes) -> None:
        nonlocal left
        if b"SET SESSION" in data and left:
            left -= 1
            call.reset()

    proxy.judge = judge
    proxy.reset_all()
    job = await fleet.submit(*fleet.quick(50))
    await eventually(lambda: left == 0, fleet.explain)
    assert (await fleet.end_of(job)).status == "completed"
    assert worker.alive
    assert len(await fleet.sessions(worker)) == 1
    _says_single_lines(worker.said())


@servers_only
async def test_an_outage_is_told_in_single_lines_and_ends(road: tuple[Proxy, Fleet]) -> None:
    proxy, fleet = road
    (worker,) = await fleet.workers(1)
    await eventually(lambda: "leads" in worker.said(), fleet.explain)
    proxy.judge = lambda call, data: call.reset()
    proxy.reset_all()
    for deed in ("claiming", "its heartbeat", "the control loop"):
        await eventually(partial(_said, worker, f"{deed} fails: "), fleet.explain)
    job = await fleet.submit(*fleet.quick(20))
    proxy.judge = pass_on
    assert (await fleet.end_of(job)).status == "completed"
    await eventually(lambda: "its heartbeat works again, after" in worker.said(), fleet.explain)
    assert worker.alive
    _says_single_lines(worker.said())


@servers_only
async def test_a_connection_that_swallows_a_report_is_given_up(road: tuple[Proxy, Fleet]) -> None:
    """Its worker beats on another: it would be taken for alive, and its runs would never end."""
    proxy, fleet = road
    fleet.env["AAICLICK_SESSION_SECONDS"] = "12"
    (worker,) = await fleet.workers(1)
    swallowed: list[Call] = []

    def judge(call: Call, data: bytes) -> None:
        if b"UPDATE tasks" in data and b"completed" in data and not swallowed:
            swallowed.append(call)
            call.silent = True

    proxy.judge = judge
    job = await fleet.submit(*fleet.quick(5))
    assert (await fleet.end_of(job)).status == "completed"
    assert len(swallowed) == 1
    assert "reporting fails: TimeoutError; trying again on another connection" in worker.said()
    assert len(await fleet.sessions(worker)) == 1
    assert {row.epoch for row in (await fleet.tasks(job)).values()} == {1}
    _says_single_lines(worker.said())
