"""What the log of operations costs: without it, without columns, and with them. CPU, statements, bytes on disk.

Run: python -m benchmarks.oplog [--rounds 7] [--operations 200]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any

from aaiclick.config import reset_settings
from aaiclick.data import col, create_object_from_value, data_context
from aaiclick.data.provenance import operation_log
from aaiclick.data.provenance.column_sources import derived
from benchmarks.setting import machine

KINDS = ("without a log", "without columns", "with columns")
WIDTH = 20


async def _work(operations: int) -> None:
    rows = await create_object_from_value({f"c{number}": [1, 2, 3] for number in range(WIDTH)})
    for _ in range(operations):
        await rows.where(col("c1") > 1).with_columns(c2=col("c3") + col("c4") * 2).materialize()


class _Counted:
    """Counts the statements that a client is given, while it is open."""

    NAMES = ("command", "rows", "make", "insert")

    def __init__(self, client: Any) -> None:
        self._client, self.count = client, 0

    def __enter__(self) -> _Counted:
        for name in self.NAMES:
            setattr(self._client, name, self._counting(getattr(self._client, name), 2 if name == "make" else 1))
        return self

    def __exit__(self, *error: object) -> None:
        for name in self.NAMES:
            delattr(self._client, name)

    def _counting(self, call: Callable[..., Any], by: int) -> Callable[..., Any]:
        async def counting(*args: Any, **kwargs: Any) -> Any:
            self.count += by
            return await call(*args, **kwargs)

        return counting


async def _round(kind: str, operations: int) -> tuple[float, int, int]:
    """Milliseconds of CPU for an operation, statements, and bytes of the log."""
    operation_log.derived = derived if kind == "with columns" else lambda relation, tables: ()
    async with data_context(oplog=kind != "without a log") as context:
        with _Counted(context.client) as asked:
            before = time.process_time()
            await _work(operations)
            await context.flush_oplog()
            spent, statements = time.process_time() - before, asked.count
        query = f"SELECT sum(bytes_on_disk) FROM system.parts WHERE table = '{operation_log.TABLE}' AND active"
        size = (await context.client.rows(query)).columns[0][0]
        await context.client.command(f"DROP TABLE IF EXISTS {operation_log.TABLE}")
    return spent * 1000 / operations, statements, int(size or 0)


async def measure(rounds: int, operations: int) -> None:
    """All kinds in turns, in one process; the first turn warms up."""
    found: dict[str, list[tuple[float, int, int]]] = {kind: [] for kind in KINDS}
    async with data_context():
        for number in range(rounds + 1):
            for kind in KINDS:
                told = await _round(kind, operations)
                if number:
                    found[kind].append(told)
    for kind, told in found.items():
        cpu, statements, size = (statistics.median(each) for each in zip(*told, strict=True))
        print(f"{kind:16} {cpu:6.2f} ms of CPU an operation, {statements:.0f} statements, {size:.0f} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--operations", type=int, default=200)
    given = parser.parse_args()
    with TemporaryDirectory() as root:
        os.environ["AAICLICK_LOCAL_ROOT"] = root
        reset_settings()
        print(machine())
        asyncio.run(measure(given.rounds, given.operations))


if __name__ == "__main__":
    main()
