"""What checked arithmetic costs: an expression of two columns and its greatest value, checked and `wrapping()`.

CPU of the engine and its client in one process, on one thread; the least of nine turns, in nanoseconds a row.

Run: python -m benchmarks.checked [--rows 5000000] [--rounds 9]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pyarrow as pa

from aaiclick.data import col, create_object_from_value, data_context
from benchmarks.setting import machine

TYPES = ("Int32", "Int64", "UInt64", "Nullable(Int64)", "Int128", "Decimal(18, 2)", "Decimal(38, 2)")
SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "a + b": lambda a, b: a + b,
    "a - b": lambda a, b: a - b,
    "a * b": lambda a, b: a * b,
    "a // b": lambda a, b: a // b,
    "a % b": lambda a, b: a % b,
}


async def cpu_ns(ask: Callable[[], Awaitable[object]], rounds: int, rows: int) -> float:
    """The least CPU of some rounds, a row."""
    spent = []
    for _ in range(rounds):
        before = time.process_time()
        await ask()
        spent.append(time.process_time() - before)
    return min(spent) / rows * 1e9


async def measure(kind: str, rows: int, rounds: int) -> None:
    async with data_context():
        numbers = await create_object_from_value(pa.table({"n": pa.array(range(rows), pa.int64())}))
        small, other = (col("n") % 1000 + 1).cast(kind), (col("n") % 77 + 1).cast(kind)
        typed = await numbers.with_columns(a=small, b=other).materialize()
        plain = await cpu_ns(lambda: typed["a"].max().data(), rounds, rows)
        for sign, of in SIGNS.items():
            sum_of = of(typed["a"], typed["b"])
            checked = await cpu_ns(sum_of.max().data, rounds, rows)
            wrapped = await cpu_ns(sum_of.wrapping().max().data, rounds, rows)
            print(
                f"| {kind} | {sign} | {plain:.1f} | {wrapped:.1f} | {checked:.1f} | {checked - wrapped:.1f} |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    asked = parser.parse_args()
    print(machine(), asked.rows, "rows")
    print("| type | expression | reading a, ns | wrapping, ns | checked, ns | the check |\n|---|---|---|---|---|---|")
    for kind in TYPES:
        asyncio.run(measure(kind, asked.rows, asked.rounds))


if __name__ == "__main__":
    main()
