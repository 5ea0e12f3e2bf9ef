"""DuckDB and polars on one query of TPC-H, in the peers' environment: answers and times as JSON.

Given on standard input: `engine`, `directory` of the parquet files, `text`, `rounds`. DuckDB keeps the tables in a
database of its own beside the files, as we do; polars scans the files, and reads SQL of its own reader.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def duckdb_runner(directory: Path, text: str) -> Callable[[], list[Any]]:
    import duckdb

    file = directory / "peer.duckdb"
    connection = duckdb.connect(str(file))
    known = {row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    for each in directory.glob("*.parquet"):
        if each.stem not in known:
            connection.execute(f"CREATE TABLE {each.stem} AS SELECT * FROM '{each}'")
    return lambda: connection.execute(text).fetchall()


def polars_runner(directory: Path, text: str) -> Callable[[], list[Any]]:
    import polars

    context = polars.SQLContext({each.stem: polars.scan_parquet(each) for each in directory.glob("*.parquet")})
    return lambda: context.execute(text).collect().rows()


RUNNERS = {"duckdb": duckdb_runner, "polars": polars_runner}


def answered(given: dict[str, Any]) -> dict[str, Any]:
    try:
        run = RUNNERS[given["engine"]](Path(given["directory"]), given["text"])
        rows = run()
    except Exception as error:  # whatever it refuses with is what we want to know
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    cpu, wall = [], []
    for _ in range(given["rounds"]):
        started = time.perf_counter(), time.process_time()
        run()
        wall.append(time.perf_counter() - started[0])
        cpu.append(time.process_time() - started[1])
    told = [[None if value is None else str(value) for value in row] for row in rows]
    return {"rows": told, "cpu": statistics.median(cpu), "wall": statistics.median(wall)}


if __name__ == "__main__":
    json.dump(answered(json.load(sys.stdin)), sys.stdout)
