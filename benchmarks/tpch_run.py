"""All 22 queries of TPC-H: Objects, the standard's SQL through the same engine, DuckDB and polars.

Run: python -m benchmarks.tpch_run --scale 1

Data, tables and figures are kept in the directory of BENCH_TPCH (by default .tpch beside the repository's files, which
git ignores): what was measured is not measured again, unless `--again`. Each query's line is printed when it is done,
all of them at the end. CPU seconds are of all threads of the process; medians of rounds, ours and the SQL in turns.
Answers are compared with DuckDB's: whole numbers, decimals, dates and texts exactly, floats to nine digits.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from aaiclick.config import reset_settings
from aaiclick.data import Context, Object, create_object_from_file, data_context, open_object
from aaiclick.errors import AaiclickError, ObjectNotFound
from benchmarks.layer_peers import ROOT, peers_python
from benchmarks.setting import machine
from benchmarks.tpch_rest import ALL as OBJECTS
from benchmarks.tpch_sql import ALL as SQL

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
HEAD = "| query | rows | ours: CPU s, wall s | SQL: CPU s, wall s | CPU, ours to SQL | DuckDB: CPU s, wall s | polars |"
Told = dict[str, Any]


def directory_of(scale: float) -> Path:
    place = Path(os.environ.get("BENCH_TPCH", ROOT / ".tpch")) / f"scale_{scale:g}"
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    return place


def generate(scale: float, place: Path) -> Path:
    """The parquet files; a generation that was broken off is begun again."""
    files, done = place / "parquet", place / "generated"
    if not done.exists():
        print(f"generating scale {scale:g} …", flush=True)
        generator = peers_python().with_name("tpchgen-cli")
        subprocess.run([str(generator), "parquet", "-s", str(scale), f"--output-dir={files}"], check=True)
        done.touch()
    return files


async def load(files: Path) -> dict[str, Object]:
    """Objects that stay: a table that is there is used again."""
    found = {}
    for name in TABLES:
        try:
            found[name] = await open_object(f"tpch_{name}")
        except ObjectNotFound:
            print(f"loading {name} …", flush=True)
            found[name] = await create_object_from_file(files / f"{name}.parquet", name=f"tpch_{name}")
    return found


def placed(text: str, tables: Mapping[str, Object]) -> str:
    """A text, with the names that our tables have."""
    names = {name: table.table for name, table in tables.items()}
    aliased = re.sub(
        r"\b(FROM|JOIN) (\w+)(?= (?:ON|JOIN|WHERE|GROUP)\b|$|\))",
        lambda m: f"{m[1]} {names[m[2]]} AS {m[2]}" if m[2] in names else m[0],
        " ".join(text.split()),
    )
    return re.sub(r"\b(FROM|JOIN) (\w+)", lambda m: f"{m[1]} {names.get(m[2], m[2])}", aliased)


async def measured(context: Context, name: str, tables: Mapping[str, Object], rounds: int) -> Told:
    """Ours and the SQL in turns: answers, CPU and wall seconds."""
    texts = {"ours": OBJECTS[name](tables).explain(), "sql": placed(SQL[name], tables)}
    found: Told = {which: {"cpu": [], "wall": []} for which in texts}
    for number in range(rounds + 1):  # the first reads from disk
        for which, text in texts.items():
            if "error" in found[which]:
                continue
            started = time.perf_counter(), time.process_time()
            try:
                answer = await context.client.rows(text)
            except AaiclickError as error:
                found[which] = {"error": str(error)[:300]}
                continue
            if number:
                found[which]["wall"].append(time.perf_counter() - started[0])
                found[which]["cpu"].append(time.process_time() - started[1])
            found[which]["answer"] = sided(answer.names, answer.columns)
    for told in found.values():
        told |= {each: statistics.median(told[each]) for each in ("cpu", "wall") if told.get(each)}
    return found


def sided(names: Sequence[str], columns: Sequence[Sequence[Any]]) -> list[list[str | None]]:
    rows = zip(*columns, strict=True)
    return [[None if value is None else str(value) for value in row] for row in rows]


def ask_peer(engine: str, name: str, files: Path, rounds: int) -> Told:
    given = json.dumps({"engine": engine, "directory": str(files), "text": SQL[name], "rounds": rounds})
    command = [str(peers_python()), "-m", "benchmarks.tpch_peers"]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1][:200]}
    return dict(json.loads(done.stdout))


# ---------------------------------------------------------------- whether answers are the same


def differs(rows: Sequence[Sequence[str | None]], right: Sequence[Sequence[str | None]]) -> str:
    """How an answer differs from another; columns may stand in another order in each row."""
    if len(rows) != len(right):
        return f"{len(rows)} rows instead of {len(right)}"
    for number, (row, wanted) in enumerate(zip(rows, right, strict=True)):
        if len(row) != len(wanted) or not all(map(is_same, _sorted(row), _sorted(wanted))):
            return f"row {number}: {row} instead of {wanted}"
    return ""


def _sorted(row: Sequence[str | None]) -> list[str | None]:
    return sorted(row, key=lambda value: (_number(value) is None, _number(value) or 0, value or ""))


def _number(value: str | None) -> Decimal | None:
    return Decimal(value) if value is not None and re.fullmatch(r"-?\d+(\.\d+)?(e[-+]?\d+)?", value) else None


def is_same(value: str | None, right: str | None) -> bool:
    if right is None:  # the sum of no rows, which is 0 for us
        return value is None or _number(value) == 0
    mine, theirs = _number(value), _number(right)
    if mine is None or theirs is None:
        return value == right
    return mine == theirs or ("." in str(value) and abs(mine - theirs) <= abs(theirs) * Decimal("1e-9"))


# ---------------------------------------------------------------- one query after the other


async def one(context: Context, name: str, tables: Mapping[str, Object], files: Path, rounds: int) -> Told:
    found = await measured(context, name, tables, rounds)
    found |= {engine: ask_peer(engine, name, files, rounds) for engine in ("duckdb", "polars")}
    right = found["duckdb"].pop("rows", None)
    for which in ("ours", "sql", "polars"):
        rows = found[which].pop("answer" if which != "polars" else "rows", None)
        if rows is not None and right is not None:
            found[which]["differs"] = differs(rows, right)
    return {"query": name, "rows": None if right is None else len(right), **found}


def line(told: Told) -> str:
    cells = [told["query"], str(told["rows"]), *(_cell(told[which]) for which in ("ours", "sql"))]
    both = told["ours"].get("cpu"), told["sql"].get("cpu")
    ratio = f"{both[0] / both[1]:.2f}" if all(both) else "-"
    return f"| {' | '.join([*cells, ratio, *(_cell(told[which]) for which in ('duckdb', 'polars'))])} |"


def _cell(told: Told) -> str:
    if "error" in told:
        return f"refused: {told['error'][:60]}"
    wrong = f", WRONG: {told['differs'][:120]}" if told.get("differs") else ""
    return f"{told['cpu']:.3f}, {told['wall']:.3f}{wrong}"


async def run(given: argparse.Namespace) -> None:
    place = directory_of(given.scale)
    files, results = generate(given.scale, place), place / "results.json"
    known: dict[str, Told] = json.loads(results.read_text()) if results.exists() else {}
    os.environ["AAICLICK_LOCAL_ROOT"] = str(place / "root")
    reset_settings()
    async with data_context(oplog=False) as context:
        tables = await load(files)
        print(HEAD + "\n" + re.sub(r"[^|]+", "---", HEAD), flush=True)
        for name in given.queries or OBJECTS:
            if name not in known or given.again:
                known[name] = await one(context, name, tables, files, given.rounds)
                partial = results.with_suffix(".new")
                partial.write_text(json.dumps(known))
                partial.replace(results)
            print(line(known[name]), flush=True)
            if given.texts:
                print(f"ours: {OBJECTS[name](tables).explain()}\nSQL: {placed(SQL[name], tables)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("queries", nargs="*", metavar="Q1", help="all, if none is named")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--again", action="store_true", help="measure also what was measured before")
    parser.add_argument("--texts", action="store_true", help="print the SQL of both")
    given = parser.parse_args()
    if unknown := [name for name in given.queries if name not in OBJECTS]:
        parser.error(f"unknown: {', '.join(unknown)}; known are {', '.join(OBJECTS)}")
    print(machine())
    asyncio.run(run(given))


if __name__ == "__main__":
    main()
