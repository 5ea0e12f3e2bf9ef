"""From submitting a job to the start of its body on an idle system, and how long layered graphs take.

The body notes its own time; submitter and worker share this machine's clock. Between two submissions the system is
idle for a while that is drawn at random, so that no poll is met by chance.

Run: python -m tests.servers postgres -- python -m benchmarks.latency [--samples 60] [--remote]

With `--remote`, on PostgreSQL only: a worker with the database, and one that asks a server, in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import socket
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from tempfile import TemporaryDirectory

from aaiclick.config import reset_settings
from aaiclick.orchestration import Job, Task, create_job, get_job, get_task_result, orch_context
from aaiclick.orchestration.access.tokens import create_token
from benchmarks.setting import fresh_database, machine

BODY = "benchmarks.bodies.tell_time"


PORT = 8971


def start_worker(url: str, root: str, *options: str, token: str = "") -> subprocess.Popen[bytes]:
    """Start a worker; with a token one that asks a server, and has no address of the database."""
    return start(url, root, "worker", "start", *options, token=token)


def start_server(url: str, root: str) -> subprocess.Popen[bytes]:
    """Start a server, and wait until it listens."""
    process = start(url, root, "server", "start", "--port", str(PORT))
    while process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", PORT), timeout=1):
            return process
        time.sleep(0.05)
    raise RuntimeError("the server has gone")


def start(url: str, root: str, *command: str, token: str = "") -> subprocess.Popen[bytes]:
    """Start a command; with a token, without the address of the database."""
    place = {"AAICLICK_API_TOKEN": token} if token else {"AAICLICK_SQL_URL": url}
    about = {name: value for name, value in os.environ.items() if name != "AAICLICK_SQL_URL"}
    env = {**about, **place, "AAICLICK_LOCAL_ROOT": root, "AAICLICK_LOG_DIR": f"{root}/logs"}
    return subprocess.Popen([sys.executable, "-m", "aaiclick", *command], env=env)


async def latencies(samples: int) -> list[float]:
    """Milliseconds from the call of create_job to the first statement of the body."""
    found: list[float] = []
    for number in range(samples + 5):
        await asyncio.sleep(random.uniform(0.2, 0.6))
        began = time.time()
        job = await create_job(f"sample {number}", BODY)
        ended = await until_ended(job.id)
        assert ended.status == "completed", ended.error
        if number >= 5:  # the first ones warm up
            found.append((float(await get_task_result(ended.tasks[0].id)) - began) * 1000)
    return found


async def until_ended(job_id: int) -> Job:
    while True:
        job = await get_job(job_id)
        assert job is not None
        if job.completed_at is not None:
            return job
        await asyncio.sleep(0.02)


async def layers(depth: int, width: int, fan_in: int) -> float:
    """Seconds for `depth` layers of `width` tasks, each waiting for `fan_in` of the layer before."""
    nodes: list[Task] = []
    above: list[Task] = []
    for _ in range(depth):
        layer = [Task("benchmarks.bodies.nothing", {"x": 1}) for _ in range(width)]
        for place, task in enumerate(layer):
            for step in range(fan_in if above else 0):
                above[(place + step) % width] >> task
        nodes += layer
        above = layer
    job = await create_job("layers", tasks=nodes)
    ended = await until_ended(job.id)
    assert ended.started_at is not None
    assert ended.completed_at is not None
    return (ended.completed_at - ended.started_at).total_seconds()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--remote", action="store_true")
    given = parser.parse_args()
    print(f"{machine()}, load {os.getloadavg()[0]:.1f}")
    if given.remote:
        for _ in range(2):
            for asks in (False, True):
                await measure_remote(given.samples, asks=asks)
        return
    for kind in ("postgres", "sqlite"):
        for executor in ("inline", "process"):
            await measure(kind, executor, given.samples)


async def measure_remote(samples: int, *, asks: bool) -> None:
    """A worker on PostgreSQL: with the database, or over a server that has it."""
    async with fresh_database("postgres") as url:
        with TemporaryDirectory() as root:
            os.environ |= {"AAICLICK_SQL_URL": url, "AAICLICK_LOCAL_ROOT": root}
            reset_settings()
            processes: list[subprocess.Popen[bytes]] = []
            options, token = ["--executor", "inline"], ""
            if asks:
                processes.append(start_server(url, root))
                token = (await create_token("bench", "worker")).text
                options += ["--coordinator", f"http://127.0.0.1:{PORT}"]
            processes.append(start_worker(url, root, *options, token=token))
            try:
                async with orch_context():
                    found = sorted(await latencies(samples))
                p50, p95 = statistics.median(found), found[int(len(found) * 0.95)]
                where = "over a server" if asks else "with the database"
                print(
                    f"postgres, inline, worker {where}: submit to body p50 {p50:.1f} ms, p95 {p95:.1f} ms", flush=True
                )
            finally:
                for process in reversed(processes):
                    process.terminate()
                    process.wait(60)


async def measure(kind: str, executor: str, samples: int) -> None:
    async with fresh_database(kind) as url:
        with TemporaryDirectory() as root:
            os.environ["AAICLICK_SQL_URL"] = url
            os.environ["AAICLICK_LOCAL_ROOT"] = root
            reset_settings()
            worker = start_worker(url, root, "--executor", executor)
            try:
                async with orch_context():
                    found = sorted(await latencies(samples))
                    p50, p95 = statistics.median(found), found[int(len(found) * 0.95)]
                    print(f"{kind}, {executor}: submit to body p50 {p50:.1f} ms, p95 {p95:.1f} ms", flush=True)
                    if executor == "inline":
                        for name, fan_in in (("all to all", 100), ("fan-in of 3", 3)):
                            seconds = await layers(10, 100, fan_in)
                            each = seconds  # 1,000 tasks: seconds are milliseconds a task
                            print(f"{kind}, 10 x 100 {name}: {seconds:.2f} s, {each:.2f} ms a task", flush=True)
            finally:
                worker.terminate()
                worker.wait(60)


if __name__ == "__main__":
    asyncio.run(main())
