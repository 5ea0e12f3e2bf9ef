"""From submitting a job to the start of its body on MariaDB, by polling and with a Redis beside it, in turns.

Run: python -m tests.servers mariadb redis -- python -m benchmarks.wake_ups [--samples 60] [--turns 2]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
from tempfile import TemporaryDirectory

from aaiclick.config import reset_settings
from aaiclick.orchestration import orch_context
from benchmarks.latency import latencies, start_worker
from benchmarks.setting import fresh_database, machine
from tests.servers import SERVERS


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--turns", type=int, default=2)
    given = parser.parse_args()
    print(f"{machine()}, load {os.getloadavg()[0]:.1f}")
    with SERVERS["redis"]() as redis_url:
        for _ in range(given.turns):
            for told in ("", redis_url):
                found = sorted(await measure(told, given.samples))
                p50, p95 = statistics.median(found), found[int(len(found) * 0.95)]
                how = "with Redis" if told else "by polling"
                print(f"mariadb, inline, {how}: submit to body p50 {p50:.1f} ms, p95 {p95:.1f} ms", flush=True)


async def measure(redis_url: str, samples: int) -> list[float]:
    """Return the milliseconds of each sample."""
    async with fresh_database("mariadb") as url:
        with TemporaryDirectory() as root:
            os.environ |= {"AAICLICK_SQL_URL": url, "AAICLICK_LOCAL_ROOT": root, "AAICLICK_REDIS_URL": redis_url}
            if not redis_url:
                del os.environ["AAICLICK_REDIS_URL"]
            reset_settings()
            worker = start_worker(url, root, "--executor", "inline")
            try:
                async with orch_context():
                    return await latencies(samples)
            finally:
                worker.terminate()
                worker.wait(60)


if __name__ == "__main__":
    asyncio.run(main())
