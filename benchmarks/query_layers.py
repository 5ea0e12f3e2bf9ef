"""Our query layer beside Ibis and sqlglot: what importing costs, eight queries, deep expressions.

The peers live in an environment of their own, made on first use in the directory of BENCH_LAYERS (by default .layers
beside the repository's files, which git ignores), and run in processes of their own (`benchmarks.peer_layers`).

Run: python -m benchmarks.query_layers [imports] [queries] [printing] [nested] [--scale 0.05]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from tempfile import TemporaryDirectory
from typing import Any

from aaiclick.config import reset_settings
from aaiclick.data import Context, Frame, Object, col, create_object, create_object_from_file, data_context
from aaiclick.data.operations import AGGREGATES, FUNCTIONS, OPERATORS
from aaiclick.data.sql import quoting
from aaiclick.errors import DataRefused
from benchmarks.layer_peers import ROOT, ask_peer, peers_python
from benchmarks.setting import machine
from benchmarks.tpch import BY_HAND, QUERIES, TABLES

# ---------------------------------------------------------------- imports

COMPILED = "import ibis; ibis.to_sql(ibis.table({'a': 'int64'}, name='t').a.sum(), dialect='clickhouse')"
LAYERS = {
    "nothing": (sys.executable, "pass"),
    "pyarrow and clickhouse_connect": ("", "import pyarrow, clickhouse_connect"),
    "these and Ibis, one query compiled": ("", f"import pyarrow, clickhouse_connect; {COMPILED}"),
    "ours": (sys.executable, "import aaiclick.data.front"),
    "sqlglot": ("", "import sqlglot; sqlglot.Dialect.get_or_raise('clickhouse')"),
    "Ibis": ("", "import ibis"),
    "Ibis, one query compiled": ("", COMPILED),
    "ours, one query compiled": (
        sys.executable,
        "from aaiclick.data.frames import Query; from aaiclick.data.query.relations import Table, Column;"
        " Query(None, Table('t', (Column('a'),)), 'list').sum().explain()",
    ),
}
TELL = "; import sys; print(len(sys.modules), open('/proc/self/statm').read().split()[1])"


def imports(rounds: int) -> None:
    """CPU milliseconds of a process that imports a layer, its modules and its memory; medians of turns."""
    spent: dict[str, list[float]] = {name: [] for name in LAYERS}
    told: dict[str, str] = {}
    for number in range(rounds + 1):  # the first reads from disk
        for name, (python, code) in LAYERS.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            command = [python or str(peers_python()), "-c", code + TELL]
            told[name] = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if number:
                spent[name].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    print("| import | CPU ms | modules | memory, MB |\n|---|---|---|---|")
    for name, times in spent.items():
        modules, pages = map(int, told[name].split())
        print(f"| {name} | {statistics.median(times) * 1e3:.0f} | {modules} | {pages * resource.getpagesize() >> 20} |")


# ---------------------------------------------------------------- eight queries


async def queries(context: Context, scale: float, rounds: int) -> None:
    """Building and compiling, the texts, their answers and their CPU."""
    with TemporaryDirectory() as directory:
        generate(scale, directory)
        tables = {
            name: await create_object_from_file(f"{directory}/{name}.parquet", name=f"bench_{name}") for name in TABLES
        }
        right = duckdb_answers(directory)
    renamed = {table.table: {field.name: field.type for field in table.schema.fields} for table in tables.values()}
    by_name = {tables[name].table: name for name in TABLES}
    schemas = {by_name[table]: kinds for table, kinds in renamed.items()}
    theirs = ask_peer("queries", schemas=schemas, rounds=rounds, repeats=20)
    print(f"rows of lineitem: {await tables['lineitem'].count():,}")
    print("| query | ours: build, compile µs | characters | Ibis: build, compile µs | characters | CPU ms |")
    texts_of_ours = {name: build(tables).explain() for name, build in QUERIES.items()}
    printer = ask_peer("printing", texts=texts_of_ours, repeats=20)
    for name in QUERIES:
        built, compiled, text = measured(name, tables, rounds)
        texts = {"ours": text, "ibis": placed(theirs[name]["text"], tables), "by hand": placed(BY_HAND[name], tables)}
        same, cpu = await answered(context, texts, right[name], rounds)
        ibis = theirs[name]
        print(
            f"| {name} | {built * 1e6:.0f}, {compiled * 1e6:.0f} | {len(texts['ours'])}"
            f" | {ibis['build'] * 1e6:.0f}, {ibis['compile'] * 1e6:.0f} | {len(ibis['text'])}"
            f" | {', '.join(f'{which} {1e3 * cpu[which]:.1f}' for which in cpu)} | same answers: {same}"
            f" | sqlglot: read {printer[name]['read'] * 1e6:.0f}, print {printer[name]['print'] * 1e6:.0f} µs",
            flush=True,
        )


def generate(scale: float, directory: str) -> None:
    generator = peers_python().with_name("tpchgen-cli")
    subprocess.run([str(generator), "parquet", "-s", str(scale), f"--output-dir={directory}"], check=True)


def measured(name: str, tables: Mapping[str, Frame], rounds: int) -> tuple[float, float, str]:
    """CPU seconds of building and compiling one of our queries, the least of several rounds, and its text."""
    build, built, compiled = QUERIES[name], [], []
    text = build(tables).explain()
    for _ in range(rounds):
        started = time.process_time()
        for _ in range(20):
            build(tables)
        built.append((time.process_time() - started) / 20)
        query = build(tables)
        started = time.process_time()
        for _ in range(20):
            query.explain()
        compiled.append((time.process_time() - started) / 20)
    return min(built), min(compiled), text


def placed(text: str, tables: Mapping[str, Object]) -> str:
    """A text, with the names that our tables have."""
    return re.sub(
        r'\b(FROM|JOIN) "?(\w+)"?', lambda m: f"{m[1]} {tables[m[2]].table if m[2] in tables else m[2]}", text
    )


def duckdb_answers(directory: str) -> dict[str, list[list[Any]]]:
    """What another engine says, in the peers' environment."""
    code = (
        "import duckdb, json, sys; c = duckdb.connect(); given = json.load(sys.stdin);"
        "[c.execute(f\"CREATE VIEW {n} AS SELECT * FROM '{given['directory']}/{n}.parquet'\")"
        " for n in given['tables']];"
        "json.dump({k: [[str(v) for v in row] for row in c.execute(q).fetchall()] for k, q in given['texts'].items()},"
        " sys.stdout)"
    )
    given = json.dumps({"directory": directory, "tables": TABLES, "texts": BY_HAND})
    command = [str(peers_python()), "-c", code]
    return dict(json.loads(subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout))


async def answered(
    context: Context, texts: Mapping[str, str], right: Sequence[Sequence[str]], rounds: int
) -> tuple[dict[str, bool], dict[str, float]]:
    """Whether each text gives the right answer, and the median of its CPU seconds, in turns."""
    same = {}
    for which, text in texts.items():
        found = await context.client.rows(text)
        rows = list(zip(*found.columns, strict=True))
        same[which] = len(rows) == len(right) and all(map(is_same_row, rows, right))
    asked = {**texts, "types of ours": f"DESCRIBE TABLE ({texts['ours']})"}
    spent = {which: list[float]() for which in asked}
    for _ in range(rounds):
        for which, text in asked.items():
            started = time.process_time()
            await context.client.rows(text)
            spent[which].append(time.process_time() - started)
    return same, {which: statistics.median(times) for which, times in spent.items()}


def is_same_row(row: Sequence[Any], right: Sequence[str]) -> bool:
    return all(map(is_same_text, row, right))


def is_same_text(value: Any, right: str) -> bool:
    if isinstance(value, float):
        return abs(value - float(right)) <= 1e-9 * abs(value)
    return Decimal(right) == value if isinstance(value, Decimal) else str(value) == right


# ---------------------------------------------------------------- sqlglot as a printer

SPECIFIC = {
    "LIMIT BY": "SELECT a, b FROM t ORDER BY a LIMIT 2 OFFSET 1 BY b LIMIT 5",
    "ARRAY JOIN": "SELECT a, x FROM t ARRAY JOIN [1, 2] AS x",
    "LEFT ARRAY JOIN": "SELECT a, x FROM t LEFT ARRAY JOIN [1, 2] AS x",
    "SETTINGS": "SELECT a FROM t SETTINGS max_threads = 1, join_use_nulls = 1",
    "FORMAT": "SELECT a FROM t FORMAT JSONEachRow",
    "parametric aggregate": "SELECT quantileExactInclusive(0.5)(a), quantilesGK(100, 0.5, 0.9)(a) FROM t",
    "combinators": "SELECT sumIf(a, b > 1), argMaxOrNull(a, b), uniqExactIf(a, b > 1) FROM t",
    "lambda": "SELECT arrayMap(x -> x + 1, [1, 2]), mapApply((k, v) -> (k, v + 1), map('a', 1)) FROM t",
    "wide numbers": "SELECT toInt256('1'), toDecimal128('1.5', 2), accurateCast(a, 'Nullable(Int8)') FROM t",
    "frame": "SELECT sum(a) OVER (PARTITION BY b ORDER BY a ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM t",
    "lagInFrame": "SELECT lagInFrame(toNullable(a), 1, 0) OVER (ORDER BY a) FROM t",
    "semi and anti joins": "SELECT l.a FROM t AS l LEFT ANTI JOIN t AS r ON l.a = r.a",
    "asof join": "SELECT l.a FROM t AS l ASOF LEFT JOIN t AS r ON l.a = r.a AND l.b >= r.b",
    "quoted names": "SELECT a AS `it``s`, b AS `sel\\\\ect` FROM t",
    "texts": "SELECT 'it\\'s', 'a\\0b', 'back\\\\slash', 'tab\\t' FROM t",
    "WITH TOTALS": "SELECT b, sum(a) FROM t GROUP BY b WITH TOTALS",
    "FINAL, PREWHERE, SAMPLE": "SELECT a FROM t FINAL PREWHERE a > 1 WHERE b > 1",
    "columns' modifiers": "SELECT * EXCEPT (a) REPLACE (b + 1 AS b) FROM t",
    "ternary, IN tuple": "SELECT a ? 1 : 2, (a, b) IN ((1, 2), (3, 4)) FROM t",
    "casts": "SELECT a::Nullable(Int8), CAST(a, 'Decimal(9, 2)'), CAST(a AS LowCardinality(String)) FROM t",
    "tuple element": "SELECT (1, 'x').2, tupleElement((1, 2), 1), [1, 2][1] FROM t",
    "parameters": "SELECT {x:Int64} + a FROM t",
}


async def printing(context: Context) -> None:
    """What sqlglot makes of our texts: the same to ClickHouse's own formatter, another, or an error; and its CPU."""
    table = await create_object({"a": "Int64", "b": "Int64"}, name="bench_printed")
    texts = {f"ours: {name}": text for name, text in operations(table).items()}
    texts |= {f"ClickHouse's: {name}": text for name, text in SPECIFIC.items()}
    found = ask_peer("printing", texts=texts, repeats=5)
    counts: Counter[str] = Counter()
    for name, text in texts.items():
        verdict = await compared(context, text, found[name])
        counts[f"{name.partition(':')[0]}: {verdict.partition(' ')[0]}"] += 1
        if not verdict.startswith("same"):
            print(f"  {name}: {verdict}")
    print(dict(counts))
    spent = {
        what: statistics.median(each[what] for each in found.values() if what in each) for what in ("read", "print")
    }
    print({what: f"{seconds * 1e6:.0f} µs, median" for what, seconds in spent.items()})


async def compared(context: Context, text: str, found: Mapping[str, Any]) -> str:
    if "error" in found:
        return f"refused ({found['error']})"
    mine, printed = await understood(context, text), await understood(context, found["printed"])
    return "same" if mine == printed else f"another: {mine} → {printed}"


async def understood(context: Context, text: str) -> str:
    """A text as ClickHouse's formatter writes it, functions by the names that ClickHouse has for them."""
    try:
        rows = await context.client.rows(f"SELECT formatQuerySingleLine({quoting.text(text)})")
    except DataRefused as error:
        return f"not read by ClickHouse: {error}"[:200]
    known = await context.client.rows("SELECT lower(name), name FROM system.functions WHERE case_insensitive")
    names = dict(zip(*known.columns, strict=True))
    return re.sub(r"\w+(?=\()", lambda found: str(names.get(found[0].lower(), found[0])), str(rows.columns[0][0]))


def operations(table: Object) -> dict[str, str]:
    """Every operation of our table, compiled on columns."""
    found = {}
    for name, operation in {**OPERATORS, **FUNCTIONS}.items():
        method = getattr(col("a"), f"__{name}__", None) or getattr(col("a"), name)
        found[name] = table.with_columns(v=method(*[col("b")] * (operation.least - 1))).explain()
    for name, operation in AGGREGATES.items():
        more = [0.5] if name == "quantile" else [col("b")] * (operation.least - 1)
        found[name] = table.group_by("b").agg(v=getattr(col("a"), name)(*more)).explain()
    return found


# ---------------------------------------------------------------- deep expressions

NESTED = [("deep", 30), ("deep", 100), ("deep", 500), ("deep", 1400), ("shared", 10), ("shared", 20), ("shared", 60)]


async def nested(context: Context) -> None:
    """Sums inside sums, and a column added to itself again and again."""
    table = await create_object({"a": "Int64"})
    await context.client.command(f"INSERT INTO {table.table} VALUES (1)")
    theirs = ask_peer("nested", counts=NESTED[:-1])
    for kind, count in NESTED:
        started = time.process_time()
        value: Any = table["a"]
        for _ in range(count):
            value = value + 1 if kind == "deep" else value + value
        text = value.explain()
        spent = time.process_time() - started
        answer = await value.data()
        print(f"{kind} {count}: ours {spent * 1e3:.1f} ms, {len(text)} characters, {answer}")
        print(f"   Ibis {theirs.get(f'{kind} {count}', 'not asked')}")


# ---------------------------------------------------------------- all of it


async def with_data(chosen: Sequence[str], scale: float, rounds: int) -> None:
    with TemporaryDirectory() as root:
        os.environ["AAICLICK_LOCAL_ROOT"] = root
        reset_settings()
        async with data_context() as context:
            if "queries" in chosen:
                await queries(context, scale, rounds)
            if "printing" in chosen:
                await printing(context)
            if "nested" in chosen:
                await nested(context)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    known = ("imports", "queries", "printing", "nested")
    parser.add_argument("chosen", nargs="*", default=known, choices=known)
    parser.add_argument("--scale", type=float, default=0.05)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    print(machine())
    if "imports" in given.chosen:
        imports(given.rounds)
    asyncio.run(with_data(given.chosen, given.scale, given.rounds))


if __name__ == "__main__":
    main()
