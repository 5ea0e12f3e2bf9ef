"""Objects against the query that one would have written, through the same client, in the same run.

For each size: a total, totals of groups, an expression made into a table, and a chain of five steps; each beside the
raw query (which writes the same columns, where a table is made). Then making Objects from Arrow and from lists and
reading them back, beside the client's own insert and query; and peak memory of an expression over the largest size.

Run: python -m benchmarks.data [--sizes 1000 1000000 10000000] [--repeats 7]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import time
from collections.abc import Awaitable, Callable
from tempfile import TemporaryDirectory

import pyarrow as pa

from aaiclick.config import reset_settings
from aaiclick.data import Context, Object, col, create_object, create_object_from_value, data_context
from aaiclick.data.tables.lifetimes import drop
from benchmarks.setting import machine

Step = Callable[[], Awaitable[object]]


async def seconds(step: Step, repeats: int) -> float:
    """The median time of a step."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        await step()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


async def compare(name: str, rows: int, ours: Step, raw: Step, repeats: int) -> None:
    """Both in turn, so that what else the machine does meets both."""
    await ours()
    await raw()
    mine, theirs = [], []
    for _ in range(repeats):
        mine.append(await seconds(ours, 1))
        theirs.append(await seconds(raw, 1))
    a, b = statistics.median(mine), statistics.median(theirs)
    print(f"{rows:>10,} {name:32} {a * 1e3:9.2f} ms, raw {b * 1e3:9.2f} ms, ratio {a / b:.2f}", flush=True)


async def given_up(context: Context, made: Object) -> None:
    """Drop a table here, so that its context does not do so a second time."""
    context._lifetime.keep(made.table)
    await drop(context.client, made.table)


async def queries(context: Context, rows: int, repeats: int) -> None:
    """What is computed in ClickHouse."""
    orders = await create_object({"a": "Int64", "b": "Int64", "k": "String"})
    fill = f"SELECT number, number % 1000, toString(number % 100) FROM numbers({rows})"
    await context.client.command(f"INSERT INTO {orders.table} {fill}")
    names = await create_object_from_value({"k": [str(n) for n in range(100)], "name": [f"n{n}" for n in range(100)]})
    t, n = orders.table, names.table

    async def raw(query: str) -> object:
        return await context.client.rows(query)

    async def made(query: str) -> None:
        await context.client.command(f"CREATE TABLE made ENGINE = MergeTree ORDER BY tuple() AS {query}")
        await drop(context.client, "made")

    async def awaited(build: Callable[[], Awaitable[Object]]) -> None:
        await given_up(context, await build())

    def chain() -> Awaitable[object]:
        kept = orders.where("b < 500").with_columns(c=col("a") * 2)
        return kept.join(names, on="k").group_by("name").sum("c").order_by("c", descending=True).data()

    chained = (
        f"SELECT name, sum(c) AS s FROM (SELECT k, a * 2 AS c FROM {t} WHERE b < 500) AS l"
        f" INNER JOIN {n} AS r ON l.k = r.k GROUP BY name ORDER BY s DESC"
    )
    await compare("sum", rows, lambda: orders["a"].sum().data(), lambda: raw(f"SELECT sum(a) FROM {t}"), repeats)
    grouped = f"SELECT b, sum(a) FROM {t} GROUP BY b"
    await compare("group_by sum", rows, lambda: orders.group_by("b").sum("a").data(), lambda: raw(grouped), repeats)
    computed = f"SELECT ((a * 2) + 1) - 3 AS value FROM {t}"
    await compare(
        "((a * 2) + 1) - 3 made",
        rows,
        lambda: awaited(lambda: (((orders["a"] * 2) + 1) - 3).materialize()),
        lambda: made(computed),
        repeats,
    )
    await compare("chain of five", rows, chain, lambda: raw(chained), repeats)


async def transfers(context: Context, rows: int, repeats: int) -> None:
    """What goes in and comes out."""
    table = pa.table({"a": pa.array(range(rows), pa.int64()), "s": pa.array([str(n % 1000) for n in range(rows)])})
    values = {"a": table["a"].to_pylist(), "s": table["s"].to_pylist()}
    await context.client.command("CREATE TABLE fed (a Int64, s String) ENGINE = MergeTree ORDER BY tuple()")

    async def created(value: object) -> None:
        await given_up(context, await create_object_from_value(value))

    async def inserted() -> None:
        await context.client.insert("fed", table)
        await context.client.command("TRUNCATE TABLE fed")

    async def inserted_lists() -> None:
        await context.client.insert("fed", pa.table(values))
        await context.client.command("TRUNCATE TABLE fed")

    await compare("create from Arrow", rows, lambda: created(table), inserted, repeats)
    await compare("create from lists", rows, lambda: created(values), inserted_lists, repeats)
    kept = await create_object_from_value(table)
    query = f"SELECT a, s FROM {kept.table}"
    await compare("arrow()", rows, kept.arrow, lambda: context.client.arrow(query), repeats)
    await compare("data()", rows, kept.data, lambda: context.client.rows(query), repeats)
    await drop(context.client, "fed")


async def logged(rows: int, repeats: int) -> None:
    """What the log of operations adds to an operation."""
    async with data_context(oplog=True) as noting:
        numbers = await create_object({"a": "Int64"})
        await noting.client.command(f"INSERT INTO {numbers.table} SELECT number FROM numbers({rows})")
        async with data_context(oplog=False) as quiet:

            async def made(context: Context) -> None:
                found = await context.materialize((numbers["a"] + 1)._relation, "list", None, "global")
                await given_up(context, found)

            await compare("made, with the oplog beside none", rows, lambda: made(noting), lambda: made(quiet), repeats)


async def memory(rows: int) -> None:
    """An expression does not bring rows into Python."""
    large = await create_object({"a": "Int64", "b": "Float64"})
    context = large._context
    await context.client.command(f"INSERT INTO {large.table} SELECT number, number / 3 FROM numbers({rows})")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = await ((large["a"] * 2 - large["b"]) / 7).mean().data()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{rows:>10,} rows in an expression: {found:.3f}, peak memory {before // 1024} MB before, {after // 1024} after"
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 1_000_000, 10_000_000])
    parser.add_argument("--repeats", type=int, default=7)
    given = parser.parse_args()
    print(machine())
    with TemporaryDirectory() as root:
        os.environ["AAICLICK_LOCAL_ROOT"] = root
        reset_settings()
        async with data_context() as context:
            for rows in given.sizes:
                repeats = given.repeats * 5 if rows <= 10_000 else given.repeats
                await queries(context, rows, repeats)
            await memory(max(given.sizes))
            await logged(given.sizes[0], given.repeats * 10)
            for rows in given.sizes[:2]:
                await transfers(context, rows, given.repeats)


if __name__ == "__main__":
    asyncio.run(main())
