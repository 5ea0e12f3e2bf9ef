"""How long `aaiclick local start` takes until it is of use: cold, with all to set up, and warm.

From the start of the process to the first answer of `/readyz`, to a live worker, and to the end of a first job, which
is submitted at once and calls no data. Then from Ctrl-C to the end of all parts.

Run: python -m benchmarks.local [--repeat 5] [--workers 2]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from aaiclick.config import reset_settings
from aaiclick.orchestration import create_job, get_job, list_workers
from aaiclick.orchestration.connections import connected
from benchmarks.rest_callers import Caller
from benchmarks.setting import machine

LOOK_EVERY_S = 0.02
WAIT_S_MAX = 120.0
HERE = Path(__file__).parents[1]

STEPS = ("server is ready", "a worker is live", "first job has ended", "Ctrl-C to the end")


async def measure(workers: int) -> list[float]:
    """Seconds to each of the steps."""
    began = time.perf_counter()
    command = ("-m", "aaiclick", "local", "start", "--json", "--port", "0", "--workers", str(workers))
    running = await asyncio.create_subprocess_exec(
        sys.executable, *command, "--app-dir", str(HERE), stdout=asyncio.subprocess.PIPE
    )
    try:
        return await _steps(running, began)
    finally:
        if running.returncode is None:
            running.kill()


async def _steps(running: asyncio.subprocess.Process, began: float) -> list[float]:
    assert running.stdout is not None
    begins = json.loads(await running.stdout.readline())
    reading = asyncio.create_task(_read_on(running.stdout))
    async with connected():
        found = await _first_uses(begins["server"])
    stopping = time.perf_counter()
    running.send_signal(signal.SIGINT)
    code = await running.wait()
    await reading
    if code:
        raise SystemExit(f"it ended with {code}")
    return [*(at - began for at in found), time.perf_counter() - stopping]


async def _first_uses(server: str) -> list[float]:
    """When the server was ready, a worker live, and a first job done."""
    job = await create_job("first", "benchmarks.bodies.noop")

    async def has_ended() -> bool:
        found = await get_job(job.id)
        return found is not None and found.status == "completed"

    async def is_live() -> bool:
        return bool(await list_workers("active"))

    return await asyncio.gather(ready(server), until(is_live), until(has_ended))


async def _read_on(out: asyncio.StreamReader) -> None:
    """Take what is told, so that it never waits for us."""
    while await out.readline():
        pass


async def ready(server: str) -> float:
    """When the server answered: it may be asked from the beginning, since the fleet holds its socket."""
    host, _, port = server.removeprefix("http://").removesuffix("/api/v1").partition(":")
    caller = await Caller(host, int(port), "none").open()
    status, body = await caller.ask("GET", "/readyz")
    await caller.close()
    if status != 200:
        raise SystemExit(f"/readyz: {status} {body!r}")
    return time.perf_counter()


async def until(is_so: Callable[[], Awaitable[bool]]) -> float:
    async with asyncio.timeout(WAIT_S_MAX):
        while not await is_so():  # noqa: ASYNC110 (another process makes it so)
            await asyncio.sleep(LOOK_EVERY_S)
    return time.perf_counter()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    print(f"{machine()}; {given.workers} workers; medians of {given.repeat}, in seconds from the start of the process")
    print(f"| start | {' | '.join(STEPS)} |\n|---|{'---|' * len(STEPS)}")
    costs: dict[str, list[list[float]]] = {"cold": [], "warm": []}
    for _ in range(given.repeat):
        with TemporaryDirectory() as place:
            os.environ |= {"AAICLICK_LOCAL_ROOT": f"{place}/root"}
            os.environ.pop("AAICLICK_SQL_URL", None)
            reset_settings()
            for found in costs.values():
                found.append(await measure(given.workers))
    for start, found in costs.items():
        print(f"| {start} | {' | '.join(f'{statistics.median(step):.2f}' for step in zip(*found, strict=True))} |")


if __name__ == "__main__":
    asyncio.run(main())
