"""Workers that ask a server, and have no database: killed, paused, cut off, and with the server away."""

from __future__ import annotations

import signal
import socket

import pytest
from sqlalchemy import select

from aaiclick.orchestration.rules.roles import Role
from aaiclick.orchestration.store import tables
from aaiclick.orchestration.store.definitions import access_tables
from tests.support.fleet import Fleet, all_gone, eventually, fleet
from tests.support.proxy import Call, Proxy
from tests.support.remote import Remote, remote_fleet

__all__ = ["fleet"]

NOT_ALLOWED = 4
"""The exit code of whoever has no token that counts."""

DATABASES = ("sqlalchemy", "alembic", "aiosqlite", "sqlite3", "asyncpg", "asyncmy", "redis")
OURS = ("aaiclick.orchestration.store", "aaiclick.orchestration.bus", "aaiclick.orchestration.coordinator.direct")
PROBE = f"""
import sys
from aaiclick.cli import main
try:
    main()
finally:
    loaded = [name for name in sys.modules if name.split(".")[0] in {DATABASES} or name.startswith({OURS})]
    print("LOADED:", sorted(loaded), file=sys.stderr, flush=True)
"""
"""The command, which says at its end what it has loaded of databases."""


@pytest.fixture
async def remote(fleet: Fleet) -> Remote:
    fleet.env |= {"AAICLICK_SESSION_SECONDS": "3", "AAICLICK_LOSSES_MAX": "1000"}
    return await remote_fleet(fleet)


async def test_a_killed_worker_is_followed_by_another(remote: Remote) -> None:
    """B1."""
    fleet = remote.fleet
    fleet.start("background", "start")
    (doomed,) = await remote.workers(1, concurrency=1)
    task = fleet.errand("waits")
    job = await fleet.submit(task)
    await fleet.noted("began", 1)
    family = doomed.family()
    doomed.kill()
    await all_gone(family)
    (heir,) = await remote.workers(1)
    await fleet.noted("began", 2)
    fleet.let()
    assert (await fleet.end_of(job)).status == "completed"
    row = (await fleet.tasks(job))["waits"]
    assert (row.lost_count, row.worker_id) == (1, await fleet.session_of(heir))
    assert await fleet.outcomes(task) == ["lost", "completed"]


async def test_a_paused_worker_that_comes_back_changes_nothing(remote: Remote) -> None:
    """B2: its body was killed in time, and whatever it says comes too late."""
    fleet = remote.fleet
    fleet.start("background", "start")
    (paused,) = await remote.workers(1, "--executor", "inline")
    job = await fleet.submit(fleet.errand("waits"))
    await fleet.noted("began", 1)
    paused.signal(signal.SIGSTOP)
    (heir,) = await remote.workers(1)
    await fleet.noted("began", 2)
    fleet.let()
    ended = await fleet.end_of(job)
    before = (await fleet.tasks(job))["waits"]
    paused.signal(signal.SIGCONT)
    await eventually(lambda: not paused.alive or paused.said() != "", fleet.explain)
    assert ended.status == "completed"
    after = (await fleet.tasks(job))["waits"]
    assert (after.epoch, after.result, after.worker_id) == (before.epoch, before.result, await fleet.session_of(heir))


async def test_a_report_whose_answer_is_lost_counts_once(remote: Remote) -> None:
    """B8."""
    fleet = remote.fleet
    proxy = Proxy("127.0.0.1", remote.port)
    port = await proxy.open()
    lost: list[str] = []

    def judge(call: Call, data: bytes) -> None:
        verb = data.partition(b" HTTP")[0].decode("ascii", "replace").rpartition("/")[2]
        if verb in ("report", "claim", "register") and verb not in lost:
            lost.append(verb)
            call.doomed = True

    proxy.judge = judge
    (worker,) = await remote.workers(1, url=f"http://127.0.0.1:{port}")
    job = await fleet.submit(*fleet.quick(5))
    assert (await fleet.end_of(job)).status == "completed"
    assert set(lost) >= {"register", "claim", "report"}
    assert {row.epoch for row in (await fleet.tasks(job)).values()} == {1}
    ends = select(tables.events).where(tables.events.c.job_id == job.id, tables.events.c.move == "complete")
    assert len([row for row in await fleet.rows(ends) if row.task_id]) == 5
    assert len(await fleet.sessions(worker)) == 1
    fleet.end()
    await proxy.close()


async def test_a_server_that_is_killed_and_comes_back_loses_nothing(remote: Remote) -> None:
    """C1: the workers go on, and report when it is back."""
    fleet = remote.fleet
    fleet.env["AAICLICK_SESSION_SECONDS"] = "30"
    await remote.workers(2, concurrency=10, AAICLICK_SESSION_SECONDS="30")
    tasks = [fleet.errand("waits_async", f"t{number}") for number in range(20)]
    job = await fleet.submit(*tasks, *fleet.quick(80))
    await fleet.noted("began", 20)
    remote.servers[0].kill()
    fleet.let()
    await fleet.noted("ended", 20)
    await remote.serve()
    assert (await fleet.end_of(job)).status == "completed"
    assert {row.epoch for row in (await fleet.tasks(job)).values()} == {1}
    assert len(fleet.notes("began")) == 20


async def test_after_a_long_outage_no_two_bodies_of_a_task_overlap(remote: Remote) -> None:
    """C2: bodies end before the session does; those that need not go on, and nobody takes their tasks."""
    fleet = remote.fleet
    control = fleet.start("background", "start")
    await remote.workers(2, concurrency=2)
    stays = fleet.errand("waits", "stays", stop_when_cut_off=False)
    stops = fleet.errand("waits", "stops")
    job = await fleet.submit(stays, stops)
    began = await fleet.noted("began", 2)
    for member in (remote.servers[0], control):
        member.kill()
    (first,) = (note for note in began if note.name == "stops")
    await all_gone([first.pid])  # while nobody can be asked
    await remote.serve()
    fleet.start("background", "start")
    await fleet.noted("began", 2, "stops")
    fleet.let()
    assert (await fleet.end_of(job)).status == "completed"
    rows = await fleet.tasks(job)
    assert (rows["stays"].epoch, len([n for n in fleet.notes("began") if n.name == "stays"])) == (1, 1)
    assert len([note for note in fleet.notes("began") if note.name == "stops"]) == 2
    assert rows["stops"].epoch > 1


async def test_of_two_servers_the_other_is_asked(remote: Remote) -> None:
    fleet = remote.fleet
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    await remote.serve(port)
    both = f"{remote.url},http://127.0.0.1:{port}"
    (worker,) = await remote.workers(1, url=both)
    for server in remote.servers:
        job = await fleet.submit(*fleet.quick(3))
        assert (await fleet.end_of(job)).status == "completed"
        if server is remote.servers[0]:
            server.kill()
    assert len(await fleet.sessions(worker)) == 1


async def test_a_node_joins_runs_and_is_shut_out_within_a_heartbeat(fleet: Fleet) -> None:
    """Nothing of a database is loaded there; once its token is revoked, its bodies end, and others run its tasks."""
    fleet.env |= {"AAICLICK_SESSION_SECONDS": "3", "AAICLICK_LOSSES_MAX": "1000"}
    remote = await remote_fleet(fleet, Role.JOIN)
    fleet.start("background", "start")
    doomed = remote.start_worker("--node-name", "doomed", program=("-c", PROBE))
    await fleet.session_of(doomed)
    job = await fleet.submit(fleet.errand("waits"))
    (began,) = await fleet.noted("began", 1)
    bound = await fleet.scalar(select(access_tables.tokens.c.id).where(access_tables.tokens.c.node_id.is_not(None)))
    revoked = fleet.start("token", "revoke", str(bound))
    assert await revoked.ended() == 0
    await all_gone([began.pid])
    (heir,) = await remote.workers(1, "--node-name", "heir")
    await fleet.noted("began", 2)
    fleet.let()
    assert (await fleet.end_of(job)).status == "completed"
    assert (await fleet.tasks(job))["waits"].worker_id == await fleet.session_of(heir)
    assert await doomed.ended() == NOT_ALLOWED
    assert "it was revoked" in doomed.said()
    assert "LOADED: []" in doomed.said()
