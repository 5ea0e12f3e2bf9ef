"""`kill -9` of a worker that runs 20 tasks: how long until all of them run on another.

Run: python -m tests.servers postgres -- python -m benchmarks.recovery [--sessions 5 30]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import time
from tempfile import TemporaryDirectory

from aaiclick.config import reset_settings
from aaiclick.orchestration import create_job, get_tasks_for_job, orch_context
from benchmarks.latency import start_worker
from benchmarks.setting import fresh_database, machine

TASKS = 20


async def recover(kind: str, session_s: float) -> float:
    """Seconds from the kill until all tasks have been claimed again by the other worker."""
    async with fresh_database(kind) as url:
        with TemporaryDirectory() as root:
            os.environ |= {
                "AAICLICK_SQL_URL": url,
                "AAICLICK_LOCAL_ROOT": root,
                "AAICLICK_SESSION_SECONDS": f"{session_s:g}",
            }
            reset_settings()
            async with orch_context():
                return await _kill_one(url, root, session_s)


async def _kill_one(url: str, root: str, session_s: float) -> float:
    job = await create_job(
        "recovery", tasks=[{"entrypoint": "benchmarks.bodies.sleep", "kwargs": {"seconds": 600}}] * TASKS
    )
    victim = start_worker(url, root, "--concurrency", str(TASKS), "--no-control")
    other = None
    try:
        await _until(job.id, epoch=1)
        other = start_worker(url, root, "--concurrency", str(TASKS))
        await asyncio.sleep(session_s + 5)  # the other has been in reach for a session
        victim.send_signal(signal.SIGKILL)
        began = time.perf_counter()
        await _until(job.id, epoch=3)
        return time.perf_counter() - began
    finally:
        for process in (victim, other):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


async def _until(job_id: int, epoch: int) -> None:
    """Wait until every task is live in this epoch."""
    while True:
        tasks = await get_tasks_for_job(job_id)
        if all(task.epoch == epoch and task.status in ("claimed", "running") for task in tasks):
            return
        await asyncio.sleep(0.1)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=float, nargs="+", default=[5, 30])
    given = parser.parse_args()
    print(machine())
    for session_s in given.sessions:
        print(f"postgres, session {session_s:g} s: {await recover('postgres', session_s):.1f} s", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
