"""The same number of no-op async tasks through pgqueuer and procrastinate, each in its fastest documented setting.

Peers live in an environment of their own and are only run. `peer_rate` makes it on first use, in the directory of
BENCH_PEERS (by default .peers beside the repository's files, which git ignores). This file is also the script
that runs inside it: it imports nothing of ours.

pgqueuer: batches of 100, drain mode. procrastinate: 100 at a time, ends when the queue is empty. Neither has graphs,
fences or a history of attempts.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
import venv
from pathlib import Path

PACKAGES = ("pgqueuer", "procrastinate", "asyncpg", "psycopg[binary]")


async def pgqueuer_rate(dsn: str, count: int) -> float:
    import asyncpg
    from pgqueuer import PgQueuer, Queries
    from pgqueuer.types import QueueExecutionMode

    pool = await asyncpg.create_pool(dsn, min_size=4, max_size=10)
    queries = Queries.from_asyncpg_pool(pool)
    await queries.install()
    for start in range(0, count, 10_000):
        size = min(10_000, count - start)
        await queries.enqueue(["nothing"] * size, [None] * size, [0] * size)
    queuer = PgQueuer.from_asyncpg_pool(pool)
    done = 0

    @queuer.entrypoint("nothing")
    async def nothing(job: object) -> None:
        nonlocal done
        done += 1

    started = time.perf_counter()
    await queuer.run(batch_size=100, mode=QueueExecutionMode.drain)
    seconds = time.perf_counter() - started
    assert done == count, done
    return count / seconds


async def procrastinate_rate(dsn: str, count: int) -> float:
    import procrastinate

    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=dsn))
    done = 0

    @app.task(name="nothing")
    async def nothing() -> None:
        nonlocal done
        done += 1

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for start in range(0, count, 1000):
            await nothing.batch_defer_async(*[{} for _ in range(min(1000, count - start))])
        started = time.perf_counter()
        await app.run_worker_async(wait=False, concurrency=100, install_signal_handlers=False)
        seconds = time.perf_counter() - started
    assert done == count, done
    return count / seconds


RATES = {"pgqueuer": pgqueuer_rate, "procrastinate": procrastinate_rate}


def peer_rate(name: str, dsn: str, count: int) -> float:
    """Tasks a second of a peer, in a process and an environment of its own."""
    script = [str(peers_python()), str(Path(__file__).resolve()), name, dsn, str(count)]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name} failed: {done.stderr[-2000:]}")
    return float(done.stdout.splitlines()[-1])


def peers_python() -> Path:
    """The interpreter of the peers' environment, which is made if it is not there."""
    place = Path(os.environ.get("BENCH_PEERS", Path(__file__).resolve().parents[1] / ".peers"))
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *PACKAGES], check=True)
    return python


if __name__ == "__main__":
    name, dsn, count = sys.argv[1:]
    print(asyncio.run(RATES[name](dsn, int(count))))
