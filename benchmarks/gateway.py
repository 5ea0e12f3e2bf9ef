"""The gateway against the engine in this process: a small query, Arrow both ways, and eight clients at once.

Run: python -m benchmarks.gateway [--rows 1000000]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from aaiclick.data.clients.contract import DataClient
from aaiclick.data.clients.opening import close_client, open_client
from aaiclick.data.embedded.directory_lock import find_gateway
from benchmarks.setting import machine


async def measure(name: str, client: DataClient, rows: int) -> None:
    small = []
    for _ in range(200):
        started = time.perf_counter()
        await client.rows("SELECT 1")
        small.append(time.perf_counter() - started)
    await client.command("DROP TABLE IF EXISTS t SYNC")
    await client.command("CREATE TABLE t (a Int64, s String) ENGINE = MergeTree ORDER BY tuple()")
    table = pa.table({"a": pa.array(range(rows), pa.int64()), "s": pa.array([str(n % 1000) for n in range(rows)])})
    started = time.perf_counter()
    await client.insert("t", table)
    there = time.perf_counter() - started
    started = time.perf_counter()
    await client.arrow("SELECT * FROM t")
    back = time.perf_counter() - started
    started = time.perf_counter()
    await asyncio.gather(*(_many(client) for _ in range(8)))
    eight = 800 / (time.perf_counter() - started)
    print(
        f"{name:10} small query p50 {statistics.median(small) * 1e3:.2f} ms, {rows:,} rows in {there * 1e3:.0f} ms,"
        f" out {back * 1e3:.0f} ms ({table.nbytes / 1e6:.0f} MB), eight clients {eight:,.0f} queries/s",
        flush=True,
    )


async def _many(client: DataClient) -> None:
    for _ in range(100):
        await client.rows("SELECT 1")


async def compare(rows: int, urls: dict[str, str]) -> None:
    for name, url in urls.items():
        client = await open_client(url)
        await measure(name, client, rows)
        await close_client(url)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    print(machine())
    with TemporaryDirectory() as root:
        directory = Path(root) / "served"
        server = subprocess.Popen([sys.executable, "-m", "aaiclick", "data", "serve", "--path", str(directory)])
        while find_gateway(directory, 1.0) is None:
            time.sleep(0.05)
        urls = {"gateway": f"chdb://{directory}", "in process": f"chdb://{Path(root) / 'here'}"}
        asyncio.run(compare(given.rows, urls))
        server.terminate()
        server.wait(30)


if __name__ == "__main__":
    main()
