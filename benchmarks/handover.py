"""What a change of the engine's owner costs those who call: short-lived processes that share one directory.

Each process inserts some batches, one call after the other, and leaves; whoever owned the engine takes it along, and
another one takes over. Calls are counted and timed; at the end, every row is counted.

Run: python -m benchmarks.handover [--writers 8] [--turns 6] [--calls 20]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from aaiclick.config import reset_settings
from aaiclick.data import create_object, data_context, open_object
from aaiclick.errors import AaiclickError
from benchmarks.setting import machine

NAME = "handed_on"


async def write(calls: int) -> None:
    """Insert so many rows, each in a call of its own, and print how long each took, or None where it failed."""
    told: list[float | None] = []
    async with data_context():
        kept = await open_object(NAME)
        for number in range(calls):
            before = time.monotonic()
            try:
                await kept.insert([number])
            except AaiclickError:
                told.append(None)
            else:
                told.append(time.monotonic() - before)
    print(json.dumps(told))


def one_writer(turns: int, calls: int) -> list[float | None]:
    told: list[float | None] = []
    for _ in range(turns):
        command = [sys.executable, "-m", "benchmarks.handover", "--write", "--calls", str(calls)]
        told += json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return told


async def prepare() -> None:
    async with data_context():
        await create_object({"value": "Int64"}, name=NAME)


async def count() -> int:
    async with data_context():
        return await (await open_object(NAME)).count()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--write", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.write:
        asyncio.run(write(asked.calls))
        return
    print(machine())
    with TemporaryDirectory() as root:
        os.environ["AAICLICK_CH_URL"] = f"chdb://{Path(root) / 'shared'}"
        reset_settings()
        asyncio.run(prepare())
        with ThreadPoolExecutor(asked.writers) as pool:
            told = [
                each
                for part in pool.map(lambda _: one_writer(asked.turns, asked.calls), range(asked.writers))
                for each in part
            ]
        times = sorted(each for each in told if each is not None)
        kept = asyncio.run(count())
    quantiles = {name: times[int(len(times) * at)] * 1e3 for name, at in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))}
    print(f"{len(told)} calls, {len(told) - len(times)} failed, {kept} rows kept;", end=" ")
    print(", ".join(f"{name} {ms:.1f} ms" for name, ms in quantiles.items()), f"worst {times[-1] * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
