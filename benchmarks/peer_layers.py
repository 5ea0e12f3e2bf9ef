"""Ibis and sqlglot, for `benchmarks.query_layers`: runs in the peers' environment and imports nothing of ours.

Reads JSON from its standard input and answers with JSON. Ibis runs on the same embedded engine, through
clickhouse-connect's own client for it, with the engine's own settings.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import clickhouse_connect
import ibis
import sqlglot
from ibis.backends.sql.datatypes import ClickHouseType

from benchmarks.edge_numbers import number_cases
from benchmarks.edge_others import other_cases
from benchmarks.edges import Case, Refusal, judged
from benchmarks.tpch_ibis import QUERIES

Given = dict[str, Any]


@contextmanager
def backend() -> Iterator[Any]:
    """Ibis, on an engine of its own."""
    with tempfile.TemporaryDirectory() as directory:
        client = clickhouse_connect.get_client(dsn=f"chdb://{directory}")
        try:
            yield ibis.clickhouse.from_connection(client)
        finally:
            client.close()


# ---------------------------------------------------------------- eight queries


def queries(given: Given) -> Given:
    """For each query: its text, and CPU seconds of building and of compiling it, the least of several rounds."""
    ibis_tables = {
        name: ibis.table({column: ClickHouseType.from_string(kind) for column, kind in kinds.items()}, name=name)
        for name, kinds in given["schemas"].items()
    }
    found = {}
    for name, build in QUERIES.items():
        compile_it: Callable[[Any], str] = ibis.clickhouse.compile
        text = str(compile_it(build(ibis_tables)))
        built, compiled = [], []
        for _ in range(given["rounds"]):
            started = time.process_time()
            for _ in range(given["repeats"]):
                build(ibis_tables)
            built.append((time.process_time() - started) / given["repeats"])
            expression = build(ibis_tables)
            started = time.process_time()
            for _ in range(given["repeats"]):
                compile_it(expression)
            compiled.append((time.process_time() - started) / given["repeats"])
        found[name] = {"text": text, "build": min(built), "compile": min(compiled)}
    return found


def printing(given: Given) -> Given:
    """sqlglot alone: CPU seconds of reading and of printing each text, and what it printed."""
    found = {}
    for name, text in given["texts"].items():
        try:
            tree = sqlglot.parse_one(text, read="clickhouse")
            printed = tree.sql(dialect="clickhouse")
        except (sqlglot.errors.SqlglotError, RecursionError) as error:
            found[name] = {"error": f"{type(error).__name__}: {error}"[:200]}
            continue
        rounds = range(given.get("repeats", 1))
        started = time.process_time()
        for _ in rounds:
            sqlglot.parse_one(text, read="clickhouse")
        read = time.process_time()
        for _ in rounds:
            tree.sql(dialect="clickhouse")
        done = time.process_time()
        found[name] = {"printed": printed, "read": (read - started) / len(rounds), "print": (done - read) / len(rounds)}
    return found


def nested(given: Given) -> Given:
    """Sums inside sums, and a column added to itself again and again: CPU seconds, the text's length, its answer."""
    found: Given = {}
    with backend() as peer:
        peer.con.command("CREATE TABLE n (a Int64) ENGINE = Memory")
        peer.con.command("INSERT INTO n VALUES (1)")
        table = peer.table("n")
        for kind, count in given["counts"]:
            started, text = time.process_time(), ""
            try:
                value = table.a
                for _ in range(count):
                    value = value + 1 if kind == "deep" else value + value
                text = peer.compile(table.select(v=value))
                spent = time.process_time() - started
                settings = {"max_query_size": 2**28, "max_ast_elements": 5_000_000}
                told: Any = table.select(v=value).to_pyarrow(settings=settings)["v"].to_pylist()
            except Exception as error:  # whatever it refuses with is what we want to know
                spent = spent if text else time.process_time() - started
                told = f"{type(error).__name__}: {error}"[:200]
            found[f"{kind} {count}"] = {"cpu": spent, "length": len(text), "answer": told}
    return found


# ---------------------------------------------------------------- edge values


class Columns:
    """What a case is built from."""

    def __init__(self, table: Any, other: Any) -> None:
        self.t, self.other, self.window = table, other, ibis.window

    def __getattr__(self, name: str) -> Any:
        return self.t[name]


def edges(given: Given) -> Given:
    """The verdicts of all cases, and what was noted of their types."""
    verdicts, noted = [], []
    with backend() as peer:
        for number, case in enumerate([*number_cases(), *other_cases()]):
            answers = Answers(peer, case, given["rows"][number], given["others"][number])
            verdicts += [verdict._asdict() for verdict in judged(case, answers.all())]
            noted += answers.noted
    return {"verdicts": verdicts, "noted": noted}


class Answers:
    """One case, asked of Ibis."""

    def __init__(self, peer: Any, case: Case, rows: list[str], others: list[str]) -> None:
        self.peer, self.case, self.rows, self.others = peer, case, rows, others
        self.noted: list[list[str]] = []

    def all(self) -> list[Any]:
        found = self._ask(self.rows)
        if self.case.whole:
            return [found]
        if not isinstance(found, Refusal) and len(found) == len(self.case.rows):
            return list(found)
        return [self._single(row) for row in self.rows]

    def _single(self, row: str) -> Any:
        found = self._ask([row])
        return found if isinstance(found, Refusal) else found[0]

    def _ask(self, rows: list[str]) -> Any:
        columns = ", ".join(f"{name} {kind}" for name, kind in zip("abc", self.case.types, strict=False))
        for table, values in (("t", rows), ("other", self.others)):
            self.peer.con.command(f"DROP TABLE IF EXISTS {table}")
            self.peer.con.command(f"CREATE TABLE {table} ({columns}) ENGINE = Memory")
            if values:
                self.peer.con.command(f"INSERT INTO {table} {self.case.fill or 'VALUES ' + ', '.join(values)}")
        return self._answer()

    def _answer(self) -> Any:
        """The answer of the text that Ibis compiles, read as our own layer reads answers; truths as Ibis means them."""
        case, table = self.case, self.peer.table("t")
        columns = Columns(table, self.peer.table("other"))
        try:
            expression = (case.peer or case.build)(columns)
            if not isinstance(expression, ibis.Expr):
                return expression if case.whole else [expression] * len(case.rows)
            whole = expression.as_table() if case.whole else table.select(v=expression)
            found = self.peer.con.query(self.peer.compile(whole), tz_mode="aware")
        except Exception as error:  # whatever it refuses with is what we want to know
            return Refusal(f"{type(error).__name__}: {error}")
        kinds = whole.schema().values()
        values = [
            list(map(_truth, each)) if kind.is_boolean() else each
            for kind, each in zip(kinds, found.result_columns, strict=True)
        ]
        self._note(whole, [each.name for each in found.column_types])
        if isinstance(expression, ibis.Table):
            return [list(row) for row in zip(*values, strict=True)]
        return values[0][0] if case.whole else values[0]

    def _note(self, whole: Any, types: list[str]) -> None:
        """The type that Ibis foretold beside that of the engine, and whether Ibis can read its own answer."""
        if self.noted:
            return
        told, engine = list(whole.schema().values())[-1], ClickHouseType.from_string(types[-1])
        same = (
            "same" if told == engine else "but for null" if told.copy(nullable=engine.nullable) == engine else "another"
        )
        same = "truth, engine a number" if told.is_boolean() and not engine.is_boolean() else same
        try:
            whole.to_pyarrow()
            read = ""
        except Exception as error:  # whatever it refuses with is what we want to know
            read = f"{type(error).__name__}: {error}"[:200]
        self.noted.append([self.case.key, same, str(told), types[-1], read])


def _truth(value: Any) -> Any:
    return bool(value) if value in (0, 1) else value


if __name__ == "__main__":
    done = globals()[sys.argv[1]](json.load(sys.stdin))
    json.dump(done, sys.stdout)
