"""Edge values through our query layer and through Ibis: how often each says what Python says, refuses, or is wrong.

Run: python -m benchmarks.edge_layers [--details]
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import Any

from aaiclick.config import reset_settings
from aaiclick.data import Context, Frame, Object, col, create_object, data_context
from aaiclick.data.sql import quoting
from aaiclick.data.tables.lifetimes import drop
from benchmarks.edge_numbers import number_cases
from benchmarks.edge_others import other_cases
from benchmarks.edges import Case, Refusal, Verdict, judged
from benchmarks.layer_peers import ask_peer
from benchmarks.setting import machine


class Columns:
    """What a case is built from."""

    def __init__(self, table: Object, other: Object) -> None:
        self.t, self.other, self.col = table, other, col

    def __getattr__(self, name: str) -> Any:
        return self.t[name]


async def edges(context: Context, details: bool) -> None:
    """How often each layer is right, refuses, or is wrong without a word."""
    cases = [*number_cases(), *other_cases()]
    rows = [[] if case.fill else list(map(written, case.rows)) for case in cases]
    others = [list(map(written, case.other)) for case in cases]
    sent = [["its rows are filled in"] if case.fill else values for case, values in zip(cases, rows, strict=True)]
    theirs = ask_peer("edges", rows=sent, others=others)
    ours: list[Verdict] = []
    for case, values, more in zip(cases, rows, others, strict=True):
        ours += judged(case, await answers(context, case, values, more))
    peers = [Verdict(**each) for each in theirs["verdicts"]]
    tell(ours, peers, details)
    noted = theirs["noted"]
    print(f"types that Ibis foretold, beside the engine's: {dict(Counter(each[1] for each in noted))}")
    print(f"answers that Ibis cannot read itself: {sum(bool(each[4]) for each in noted)} of {len(noted)}")
    for key, same, told, engine, read in noted if details else ():
        if same == "another" or read:
            print(f"  {same}: {key}: {told}, engine {engine} {read}")


def written(row: Sequence[Any]) -> str:
    return f"({', '.join(map(quoting.literal, row))})"


async def answers(context: Context, case: Case, rows: Sequence[str], others: Sequence[str]) -> list[Any]:
    found = await ask(context, case, rows, others)
    if case.whole:
        return [found]
    if not isinstance(found, Refusal):
        return list(found)
    singles = [await ask(context, case, [row], others) for row in rows]
    return [each if isinstance(each, Refusal) else each[0] for each in singles]


async def ask(context: Context, case: Case, rows: Sequence[str], others: Sequence[str]) -> Any:
    """The answer of our layer: a list for the rows, a value or rows for all, or a refusal."""
    kinds = dict(zip("abc", case.types, strict=False))
    tables = [await create_object(kinds), await create_object(kinds)]
    for table, values in zip(tables, (rows, others), strict=True):
        if values or (table is tables[0] and case.fill):
            await context.client.command(f"INSERT INTO {table.table} {case.fill or 'VALUES ' + ', '.join(values)}")
    try:
        found = case.build(Columns(*tables))
        if not isinstance(found, Frame):
            return found if case.whole else [found] * len(rows)
        value = await found.data()
        if case.whole and found.shape == "record":
            return next(iter(value.values()))
        return [list(row) for row in zip(*value.values(), strict=True)] if found.shape == "table" else value
    except Exception as error:  # whatever it refuses with is what we want to know
        return Refusal(f"{type(error).__name__}: {error}")
    finally:
        for table in tables:
            context._lifetime.keep(table.table)
            await drop(context.client, table.table)


def is_of(verdict: Verdict, group: str) -> bool:
    return not group or verdict.key.startswith(f"{group}:")


def tell(ours: Sequence[Verdict], peers: Sequence[Verdict], details: bool) -> None:
    groups = dict.fromkeys(each.key.partition(":")[0] for each in ours)
    print("| values | asked | ours: right, refused, wrong | Ibis: right, refused, wrong | wrong in both |")
    for group in (*groups, ""):
        mine = Counter(each.verdict for each in ours if is_of(each, group))
        theirs = Counter(each.verdict for each in peers if is_of(each, group))
        both = sum(a.verdict == b.verdict == "wrong" for a, b in zip(ours, peers, strict=True) if is_of(a, group))
        told = [", ".join(str(each[verdict]) for verdict in ("right", "refused", "wrong")) for each in (mine, theirs)]
        print(f"| {group or '**all**'} | {mine.total()} | {told[0]} | {told[1]} | {both} |")
    for a, b in zip(ours, peers, strict=True) if details else ():
        if (a.verdict, b.verdict) != ("right", "right"):
            print(f"{a.key} {a.row}: Python {a.expected}; ours {a.verdict} {a.found}; Ibis {b.verdict} {b.found}")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--details", action="store_true", help="every answer that is not right in both")
    details = parser.parse_args().details
    print(machine())
    with TemporaryDirectory() as root:
        os.environ["AAICLICK_LOCAL_ROOT"] = root
        reset_settings()
        async with data_context() as context:
            await edges(context, details)


if __name__ == "__main__":
    asyncio.run(main())
