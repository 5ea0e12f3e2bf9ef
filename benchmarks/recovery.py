"""What a `kill -9` costs: of a worker, of the server that it asks, of both; and a server that is away for long.

A worker runs 20 tasks; how long until all of them run (again), and in which epochs.

Run: python -m tests.servers postgres -- python -m benchmarks.recovery [--sessions 5 30]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from tempfile import TemporaryDirectory

from aaiclick.config import reset_settings
from aaiclick.orchestration import create_job, get_tasks_for_job, orch_context
from aaiclick.orchestration.access.tokens import create_token
from benchmarks.latency import PORT, start, start_server, start_worker
from benchmarks.setting import fresh_database, machine

TASKS = 20


class Stage:
    """Processes on one database, and a job whose tasks sleep."""

    def __init__(self, url: str, root: str, session_s: float) -> None:
        self.url, self.root, self.session_s = url, root, session_s
        self.job_id = 0
        self.token = ""
        self._processes: list[subprocess.Popen[bytes]] = []

    async def begin(self) -> None:
        self.token = (await create_token("bench", "worker")).text
        bodies = [{"entrypoint": "benchmarks.bodies.sleep", "kwargs": {"seconds": 600}}] * TASKS
        self.job_id = (await create_job("recovery", tasks=bodies)).id

    def worker(self, *options: str, remote: bool = False) -> subprocess.Popen[bytes]:
        asked = ("--coordinator", f"http://127.0.0.1:{PORT}") if remote else options
        token = self.token if remote else ""
        return self._kept(start_worker(self.url, self.root, "--concurrency", str(TASKS), *asked, token=token))

    def server(self) -> subprocess.Popen[bytes]:
        return self._kept(start_server(self.url, self.root))

    def control(self) -> subprocess.Popen[bytes]:
        return self._kept(start(self.url, self.root, "background", "start"))

    def _kept(self, process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        self._processes.append(process)
        return process

    async def epochs(self) -> Counter[int]:
        return Counter(task.epoch for task in await get_tasks_for_job(self.job_id))

    async def until_live(self, epoch: int) -> float:
        """Return the seconds until every task is live in this epoch or a later one."""
        began = time.perf_counter()
        while True:
            tasks = await get_tasks_for_job(self.job_id)
            if all(task.epoch >= epoch and task.status in ("claimed", "running") for task in tasks):
                return time.perf_counter() - began
            await asyncio.sleep(0.1)

    def end(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()


async def worker_killed(stage: Stage) -> str:
    """A worker with the database is killed; another takes its tasks."""
    victim = stage.worker("--no-control")
    await stage.until_live(1)
    stage.worker()
    await asyncio.sleep(stage.session_s + 5)  # the other has been in reach for a session
    victim.send_signal(signal.SIGKILL)
    return f"all run elsewhere after {await stage.until_live(2):.1f} s"


async def remote_worker_killed(stage: Stage) -> str:
    """The same over a server."""
    stage.server()
    stage.control()
    victim = stage.worker(remote=True)
    await stage.until_live(1)
    stage.worker(remote=True)
    await asyncio.sleep(stage.session_s + 5)
    victim.send_signal(signal.SIGKILL)
    return f"all run elsewhere after {await stage.until_live(2):.1f} s"


async def server_killed(stage: Stage) -> str:
    """The server is killed, and started again at once: what runs goes on."""
    server = stage.server()
    stage.control()
    stage.worker(remote=True)
    await stage.until_live(1)
    server.send_signal(signal.SIGKILL)
    server.wait()
    stage.server()
    await asyncio.sleep(2 * stage.session_s)
    return f"two sessions later all run: {await stage.until_live(1):.1f} s; epochs {dict(await stage.epochs())}"


async def both_killed(stage: Stage) -> str:
    """The server and its worker are killed, and started again at once."""
    server = stage.server()
    stage.control()
    victim = stage.worker(remote=True)
    await stage.until_live(1)
    for process in (victim, server):
        process.send_signal(signal.SIGKILL)
        process.wait()
    stage.server()
    stage.worker(remote=True)
    return f"all run again after {await stage.until_live(2):.1f} s"


async def server_away(stage: Stage) -> str:
    """The server is killed, and away for three sessions: the worker has stopped its bodies, and begins them anew."""
    server = stage.server()
    stage.control()
    stage.worker(remote=True)
    await stage.until_live(1)
    server.send_signal(signal.SIGKILL)
    server.wait()
    await asyncio.sleep(3 * stage.session_s)
    stage.server()
    seconds = await stage.until_live(2)
    return f"all run again {seconds:.1f} s after its start; epochs {dict(await stage.epochs())}"


CASES: tuple[Callable[[Stage], Awaitable[str]], ...] = (
    worker_killed,
    remote_worker_killed,
    server_killed,
    both_killed,
    server_away,
)


async def run(case: Callable[[Stage], Awaitable[str]], session_s: float) -> str:
    async with fresh_database("postgres") as url:
        with TemporaryDirectory() as root:
            os.environ |= {
                "AAICLICK_SQL_URL": url,
                "AAICLICK_LOCAL_ROOT": root,
                "AAICLICK_SESSION_SECONDS": f"{session_s:g}",
            }
            reset_settings()
            stage = Stage(url, root, session_s)
            async with orch_context():
                try:
                    await stage.begin()
                    return await case(stage)
                finally:
                    stage.end()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=float, nargs="+", default=[5, 30])
    given = parser.parse_args()
    print(f"{machine()}, load {os.getloadavg()[0]:.1f}")
    for session_s in given.sessions:
        for case in CASES:
            print(f"postgres, session {session_s:g} s, {case.__name__}: {await run(case, session_s)}", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
