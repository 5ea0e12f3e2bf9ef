"""Ten million rows through `map` and `reduce`: readings of sensors are corrected, and the hottest is found in layers.

    python examples/map_reduce.py [--rows 10000000] [--partition 500000]

The rows stay in ClickHouse; the functions are plain Python. `map` is given batches here (Arrow tables), which is how to
go through many rows; a function of one row does the same with `batch=False`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from aaiclick.data import Object, create_object_from_value, data_context, raw
from aaiclick.orchestration import ajob_test, get_job_result, job, task
from aaiclick.orchestration.operators import map as map_rows
from aaiclick.orchestration.operators import reduce as reduce_rows

SENSORS = 100


@task
async def readings(rows: int) -> Any:
    """Each sensor measures in a wave of its own; the engine works it out."""
    numbers = await create_object_from_value(pa.table({"number": pa.array(range(rows), pa.int64())}))
    waves = numbers.with_columns(sensor=raw(f"number % {SENSORS}"), celsius=raw("15 + 10 * sin(number / 1000)"))
    return await waves[["sensor", "celsius"]]


def corrected(batch: pa.Table, offset: float) -> pa.Table:
    """Sensors of an even number show too little."""
    even = pc.equal(pc.bit_wise_and(batch["sensor"], 1), 0)
    value = pc.add(batch["celsius"], pc.if_else(even, offset, 0.0))
    return batch.set_column(1, "celsius", value)


async def hottest(part: Object, output: Object) -> None:
    """The one row of a part with the highest reading."""
    await output.insert(part.order_by("celsius", "sensor", descending=[True, False]).limit(1))


@job("map and reduce")
def map_reduce(rows: int, partition: int) -> Any:
    found = map_rows(corrected, readings(rows), partition, kwargs={"offset": 0.5}, batch=True)
    return {"hottest": reduce_rows(hottest, found, partition), "rows": count(found)}


@task
async def count(rows: Object) -> int:
    return await rows.count()


async def main(rows: int, partition: int) -> int:
    done = await ajob_test(map_reduce, rows, partition)
    if done.status != "completed":
        print(done.error, file=sys.stderr)
        return 1
    async with data_context():
        found = await get_job_result(done)
        hottest_row = await found["hottest"].data(orient="records")
    print(f"{found['rows']:,} rows in {done.total_tasks} tasks; the hottest: {hottest_row}")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Ten million rows through map and reduce.")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--partition", type=int, default=500_000)
    given = parser.parse_args()
    sys.exit(asyncio.run(main(given.rows, given.partition)))
