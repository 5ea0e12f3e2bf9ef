"""Logs of workers elsewhere: followed where the server is, and complete after cuts and kills."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aaiclick.orchestration.execution.logs.spool import LEFT
from tests.support.fleet import Fleet, all_gone, eventually, fleet
from tests.support.remote import Remote, remote_fleet

__all__ = ["fleet"]


@pytest.fixture
async def remote(fleet: Fleet) -> Remote:
    fleet.env["AAICLICK_SESSION_SECONDS"] = "30"
    return await remote_fleet(fleet)


async def test_a_log_is_followed_from_afar_and_complete_after_a_cut(remote: Remote) -> None:
    """The server is away for a while; the body goes on, and nothing that it writes is lost or doubled."""
    fleet = remote.fleet
    node = fleet.home / "node"
    await remote.workers(1, AAICLICK_LOG_DIR=str(node), AAICLICK_SESSION_SECONDS="30")
    job = await fleet.submit(fleet.errand("talks"))
    await fleet.noted("began", 1)
    task = (await fleet.tasks(job))["talks"]
    follower = fleet.start("task", "logs", str(task.id), "--follow")
    await eventually(lambda: "line 1\n" in follower.said(), fleet.explain)
    remote.servers[0].kill()
    await eventually(lambda: b"line 40\n" in spooled(node), fleet.explain)
    await remote.serve()
    fleet.let()
    assert await follower.ended() == 0
    lines = follower.said().splitlines()
    count = len(re.findall("^line ", follower.said(), re.M))
    assert lines == ["before the wait", *(f"line {number}" for number in range(count)), f"after {count} lines"]
    assert (await fleet.end_of(job)).status == "completed"
    (row,) = (await fleet.tasks(job)).values()
    assert row.log_path == str(Path(fleet.env["AAICLICK_LOG_DIR"]) / f"{row.id}.1.log")
    await eventually(lambda: spooled(node) == b"", fleet.explain)


async def test_what_a_killed_worker_had_not_sent_is_sent_by_the_next(remote: Remote) -> None:
    fleet = remote.fleet
    node = fleet.home / "node"
    fleet.start("background", "start", AAICLICK_SESSION_SECONDS="3")
    (doomed,) = await remote.workers(1, AAICLICK_LOG_DIR=str(node), AAICLICK_SESSION_SECONDS="3")
    job = await fleet.submit(fleet.errand("talks"))
    await fleet.noted("began", 1)
    log = Path(fleet.env["AAICLICK_LOG_DIR"]) / f"{(await fleet.tasks(job))['talks'].id}.1.log"
    await eventually(lambda: log.exists() and b"line" in log.read_bytes(), fleet.explain)
    family = doomed.family()
    doomed.kill()
    await all_gone(family)
    left = spooled(node)
    assert left.startswith(log.read_bytes())
    await remote.workers(1, AAICLICK_LOG_DIR=str(node), AAICLICK_SESSION_SECONDS="3")
    await eventually(lambda: log.read_bytes() == left + LEFT, fleet.explain)
    fleet.let()


def spooled(node: Path) -> bytes:
    """What is on the disk of the worker's machine."""
    return b"".join(file.read_bytes() for file in (node / "spool").glob("*/*.log"))
