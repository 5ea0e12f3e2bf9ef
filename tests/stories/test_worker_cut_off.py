"""A worker that is cut off, or paused, stops its bodies before anybody else may begin them: no two run at a time."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psutil
import pytest

from aaiclick.orchestration.models import Job
from tests.support.fleet import LONG, Fleet, Member, all_gone, eventually, fleet, is_running, servers_only
from tests.support.proxy import Call, Proxy, proxied
from tests.support.witness import begun_elsewhere, lives, overlaps

__all__ = ["fleet"]

SESSION_S = "6"
CALM_S = "30"  # the session of the worker that takes over, which must keep it on a busy machine


@asynccontextmanager
async def cut_off(proxy: Proxy) -> AsyncIterator[None]:
    """Nothing comes through, and nobody is told."""

    def swallow(call: Call, _: bytes) -> None:
        call.silent = True

    proxy.judge = swallow
    for call in proxy.calls:
        call.silent = True
    yield
    proxy.judge = lambda call, _: None
    proxy.reset_all()


async def two_workers(fleet: Fleet, url: str, executor: str, *names: str, **options: Any) -> tuple[Member, Job]:
    """One by way of this address, which begins a task for each body; and another that could."""
    fleet.env["AAICLICK_SESSION_SECONDS"] = SESSION_S
    settings = {"concurrency": len(names), "AAICLICK_SQL_URL": url}
    (first,) = await fleet.workers(1, "--executor", executor, "--no-control", **settings)
    job = await fleet.submit(*(fleet.errand(name, **options) for name in names))
    await fleet.noted("began", len(names))
    calm = {"concurrency": len(names), "AAICLICK_SESSION_SECONDS": CALM_S}
    await fleet.workers(1, "--executor", executor, **calm)
    return first, job


async def ends(fleet: Fleet, job: Job) -> None:
    """All complete; each was lost once, which was nobody's failure."""
    fleet.let()
    assert (await fleet.end_of(job)).status == "completed"
    for row in (await fleet.tasks(job)).values():
        assert (row.lost_count, row.crash_count, row.attempt) == (1, 0, 0)


@servers_only
@pytest.mark.parametrize("executor", ["process", "inline"] if LONG else ["process"])
async def test_bodies_of_a_worker_that_is_cut_off_end_before_others_begin(fleet: Fleet, executor: str) -> None:
    names = ("ticks", "ticks_async") if executor == "process" else ("ticks_async",)
    async with proxied(fleet.database.url) as (proxy, url):
        first, job = await two_workers(fleet, url, executor, *names)
        async with cut_off(proxy):
            await begun_elsewhere(fleet, *names)
        assert overlaps(fleet, *names) == []
        assert first.alive
        assert "has not answered" in first.said()
        await ends(fleet, job)


@pytest.mark.parametrize("dialect", ["postgres"], indirect=True)
async def test_an_inline_body_that_cannot_be_stopped_ends_its_worker(fleet: Fleet) -> None:
    async with proxied(fleet.database.url) as (proxy, url):
        first, job = await two_workers(fleet, url, "inline", "ticks")
        async with cut_off(proxy):
            assert await first.ended() == os.EX_TEMPFAIL
            await begun_elsewhere(fleet, "ticks")
        assert "ticks cannot be stopped" in first.said()
        assert overlaps(fleet, "ticks") == []
        await ends(fleet, job)


@pytest.mark.parametrize("dialect", ["postgres"], indirect=True)
async def test_a_body_that_prefers_to_finish_goes_on(fleet: Fleet) -> None:
    async with proxied(fleet.database.url) as (proxy, url):
        _, job = await two_workers(fleet, url, "process", "ticks", stop_when_cut_off=False)
        (old,) = lives(fleet, "ticks")
        async with cut_off(proxy):
            await begun_elsewhere(fleet, "ticks")
            assert is_running(old)
            assert overlaps(fleet, "ticks")
        await ends(fleet, job)


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", *["mariadb"] * LONG], indirect=True)
@pytest.mark.parametrize("nursery", ["runs", "paused"])
async def test_children_of_a_paused_worker_end_before_others_begin(fleet: Fleet, nursery: str) -> None:
    """The nursery kills them; and if it is paused too, they themselves do."""
    first, job = await two_workers(fleet, fleet.database.url, "process", "ticks")
    stopped = [psutil.Process(first.pid)]
    if nursery == "paused":
        stopped += stopped[0].children()
    (old,) = lives(fleet, "ticks")
    async with fleet.transaction():  # it holds no lock then: on SQLite nobody else could write for as long as it sleeps
        for process in stopped:
            process.suspend()
    await begun_elsewhere(fleet, "ticks")
    assert overlaps(fleet, "ticks") == []
    assert not is_running(old)
    for process in stopped:
        process.resume()
    await ends(fleet, job)


@pytest.mark.parametrize("dialect", ["postgres"], indirect=True)
async def test_after_a_cut_that_was_shorter_than_the_session_runs_are_given_back_and_nothing_is_counted(
    fleet: Fleet,
) -> None:
    """They were stopped before anybody could know; the worker comes back with the same session."""
    fleet.env |= {"AAICLICK_SESSION_SECONDS": "12", "AAICLICK_CANCEL_GRACE_SECONDS": "4"}
    async with proxied(fleet.database.url) as (proxy, url):
        (only,) = await fleet.workers(1, concurrency=1, AAICLICK_SQL_URL=url)
        job = await fleet.submit(fleet.errand("ticks"))
        await fleet.noted("began", 1)
        async with cut_off(proxy):
            await eventually(lambda: "has not answered" in only.said(), fleet.explain)
            await all_gone(lives(fleet, "ticks"))
        await fleet.noted("began", 2)
        assert overlaps(fleet, "ticks") == []
        fleet.let()
        assert (await fleet.end_of(job)).status == "completed"
        (row,) = (await fleet.tasks(job)).values()
        assert (row.lost_count, row.crash_count, row.attempt) == (0, 0, 0)
        assert len(await fleet.sessions(only)) == 1
