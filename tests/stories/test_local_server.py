"""The server of `aaiclick local start`: it answers whatever the tasks do, and comes again when it is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from aaiclick.orchestration import get_job, get_job_result, run_job
from aaiclick.orchestration.models import Job
from tests.support.fleet import eventually
from tests.support.local_fleet import LocalFleet, Place, machine

__all__ = ["machine"]

ANSWERS = 50
PATIENCE_S = 60.0

EDITED = """
from pathlib import Path
import os, time
from aaiclick.orchestration import task

VERSION = {version}

@task
def tell(place: str = "") -> int:
    if place:
        with open(Path(place) / "notes", "ab", buffering=0) as notes:
            notes.write(f"tell began {{os.getpid()}}\\n".encode())
        while not (Path(place) / "go").exists():
            time.sleep(0.02)
    return VERSION
"""


def token_of(running: LocalFleet) -> str:
    """The fleet's first token, from the file that it names."""
    return Path(running.named("begins")[0]["token_file"]).read_text().strip()


@asynccontextmanager
async def asking(running: LocalFleet, token: str | None = None) -> AsyncIterator[httpx.AsyncClient]:
    """A client with the fleet's first token."""
    begins = running.named("begins")[0]
    headers = {"Authorization": f"Bearer {token or token_of(running)}"}
    async with httpx.AsyncClient(base_url=begins["server"], headers=headers, timeout=PATIENCE_S) as client:
        yield client


async def result_of(job: Job, running: LocalFleet) -> object:
    async def completed() -> bool:
        found = await get_job(job.id)
        assert found is not None
        assert found.status in ("pending", "running", "completed"), found.error
        return found.status == "completed"

    await eventually(completed, running.explain)
    return await get_job_result(job.id)


async def test_the_server_answers_while_tasks_keep_all_processors_busy(
    machine: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More bodies than processors, which never wait; all answers are there before the first of them ends."""
    monkeypatch.setenv("AAICLICK_ENTRYPOINT_PREFIXES", "tests.support")
    spinners = (os.cpu_count() or 1) + 1
    running = await machine.start("--port", "0", "--workers", "1", "--concurrency", str(spinners)).up()
    async with asking(running) as client:
        body = {"count": spinners, "place": str(machine.place)}
        asked = {"name": "spin", "entrypoint": "tests.support.spinning.spin_all", "kwargs": body}
        submitted = await client.post("/jobs", json=asked)
        assert submitted.status_code == 201, submitted.text
        job_id = submitted.json()["id"]
        bodies = await machine.began(spinners)
        for _ in range(ANSWERS):
            assert (await client.get(f"/jobs/{job_id}")).json()["status"] == "running"
            assert len((await client.get(f"/jobs/{job_id}/tasks", params={"status": "completed"})).json()["tasks"]) == 1
        server = psutil.Process(running.pid_of("server"))
        assert not {server.pid, *(child.pid for child in server.children(recursive=True))} & set(bodies)
        machine.go()
        job = await get_job(int(job_id))
        assert job is not None
        assert await result_of(job, running) == list(range(spinners))


async def test_a_killed_server_is_started_again_and_whoever_asked_meanwhile_is_answered(machine: Place) -> None:
    running = await machine.start("--port", "0", "--workers", "1").up()
    async with asking(running) as client:
        assert (await client.get("/jobs")).status_code == 200
        os.kill(running.pid_of("server"), signal.SIGKILL)
        await running.until("died", "server")
    async with asking(running) as client:  # the fleet holds the socket: nobody is turned away
        assert (await client.get("/jobs")).status_code == 200
    assert len(running.named("started", "server")) == 2
    assert len(running.named("started", "worker 1")) == 1
    running.family()
    running.process.kill()
    await running.ended()
    await the_token_counts_in_the_next_start_and_is_not_shown_again(machine, token_of(running))


async def the_token_counts_in_the_next_start_and_is_not_shown_again(machine: Place, token: str) -> None:
    again = await machine.start("--port", "0", "--workers", "1").up()
    assert token not in again.explain()
    async with asking(again, token) as client:
        assert (await client.get("/jobs")).status_code == 200
        assert (await client.get("/jobs", headers={"Authorization": "Bearer none"})).status_code == 401
    again.family()
    again.process.send_signal(signal.SIGTERM)
    assert await again.ended() == 0, again.explain()
    assert {told["part"]: told["code"] for told in again.named("ended")}["server"] == 0


async def test_when_modules_change_what_runs_finishes_and_what_follows_is_new(
    machine: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    flows = machine.home / "edited"
    flows.mkdir()
    monkeypatch.syspath_prepend(flows)
    write(flows, 1)
    running = await machine.start("--port", "0", "--workers", "1", "--reload", "--app-dir", str(flows)).up()
    entry = "edited_flow.tell"
    under_way = await run_job("slow", entry, {"place": str(machine.place)})
    await machine.began(1)
    write(flows, 22)
    await running.until("reloading")
    later = await run_job("later", entry, {})
    machine.go()
    assert await result_of(under_way, running) == 1
    assert await result_of(later, running) == 22
    assert len(await machine.began(1)) == 1
    assert running.named("renewed", "worker 1")[0]["code"] == 0
    assert [len(running.named("started", part)) for part in ("engine", "control", "server")] == [1, 1, 1]


def write(place: Path, version: int) -> None:
    (place / "edited_flow.py").write_text(EDITED.format(version=version))
