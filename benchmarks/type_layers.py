"""Our grammar of types beside clickhouse-connect's registry, and our way from values to Arrow beside others'.

The engine says what is right: which texts are types and how it spells them; and which values come back from a table.
Grammar: chosen texts, types drawn by lot, and the same with one sign taken out, put in or exchanged.
Values: through pyarrow's, pandas' and polars' own inference into a file of Arrow that ClickHouse reads with its own;
through clickhouse-connect into a table whose type is given; and through ours, with and without a type.

Run: python -m benchmarks.type_layers [grammar] [values] [--count 2000] [--details]
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aaiclick.config import reset_settings
from aaiclick.data import Context, create_object, create_object_from_value, data_context
from aaiclick.data.sql import quoting
from aaiclick.data.typing.grammar import PLAIN, parse
from aaiclick.errors import AaiclickError, DataRefused
from benchmarks.setting import machine
from benchmarks.type_cases import CHOSEN, VALUES, is_kept

NESTED = ("Nullable", "LowCardinality", "Array", "Map", "Tuple", "named Tuple")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")
SIGNS = "()', `=\\-aU0123456789"


def drawn(draw: random.Random, depth: int = 0) -> str:
    """A type drawn by lot; not all of them make sense, such as Nullable(Array(…))."""
    kind = draw.choice(
        (*PLAIN, "FixedString", "DateTime", "DateTime64", "Decimal", "Enum", *(NESTED * 2) * (depth < 4))
    )
    match kind:
        case "FixedString":
            return f"FixedString({draw.randint(1, 64)})"
        case "DateTime":
            return draw.choice(("DateTime", f"DateTime('{draw.choice(ZONES)}')"))
        case "DateTime64":
            return f"DateTime64({draw.randint(0, 9)}, '{draw.choice(ZONES)}')"
        case "Decimal":
            digits = draw.randint(1, 76)
            return f"Decimal({digits}, {draw.randint(0, digits)})"
        case "Enum":
            labels = draw.sample(("a", "b c", "it\\'s", "x,y", "(p)", "back\\\\", "é", "q = 1"), draw.randint(1, 4))
            members = ", ".join(f"'{label}' = {number}" for number, label in enumerate(labels, draw.randint(-100, 100)))
            return f"Enum8({members})"
        case "Nullable" | "LowCardinality" | "Array":
            return f"{kind}({drawn(draw, depth + 1)})"
        case "Map":
            return f"Map({draw.choice(('String', 'UInt64', 'Date'))}, {drawn(draw, depth + 1)})"
        case "Tuple":
            return f"Tuple({', '.join(drawn(draw, depth + 1) for _ in range(draw.randint(1, 3)))})"
        case "named Tuple":
            names = draw.sample(("a", "b", "`c d`", "`it\\`s`", "from_"), draw.randint(1, 3))
            return f"Tuple({', '.join(f'{name} {drawn(draw, depth + 1)}' for name in names)})"
    return kind


def mutated(draw: random.Random, text: str) -> str:
    """The text with one sign taken out, put in or exchanged."""
    place = draw.randrange(len(text))
    return text[:place] + draw.choice(("", draw.choice(SIGNS))) + text[place + draw.randint(0, 1) :]


# ---------------------------------------------------------------- grammar


def ours(text: str) -> str | None:
    try:
        return str(parse(text))
    except AaiclickError:
        return None


def registry(text: str) -> str | None:
    """clickhouse-connect's spelling; None if it refuses, with whatever error."""
    from clickhouse_connect.datatypes.registry import get_from_name

    try:
        return str(get_from_name(text).name)
    except Exception:  # of many kinds
        return None


def refusals(text: str) -> dict[str, str]:
    """What both say of a text that is no type."""
    from clickhouse_connect.datatypes.registry import get_from_name

    found = {}
    for name, read in (("ours", parse), ("registry", get_from_name)):
        try:
            found[name] = f"accepted: {read(text)}"
        except Exception as error:  # of many kinds
            found[name] = f"{type(error).__name__}: {error}"
    return found


async def spelled(context: Context, text: str) -> str | None:
    """The engine's own spelling of a type; None if it is none to it."""
    try:
        found = await context.client.rows(f"SELECT toTypeName(defaultValueOfTypeName({quoting.text(text)}))")
    except DataRefused:
        return None
    return re.sub(r",\n +", ", ", re.sub(r"\(\n +", "(", str(found.columns[0][0])))  # parts with names, a line each


async def grammar(context: Context, count: int, details: bool) -> None:
    """How often each reader agrees with the engine."""
    draw = random.Random(7)
    made = [drawn(draw) for _ in range(count)]
    sets = {"chosen": list(CHOSEN), "drawn by lot": made, "one sign changed": [mutated(draw, text) for text in made]}
    print("| texts | engine takes | reader | same | another spelling | both refuse | takes more | takes less |")
    for name, texts in sets.items():
        engine = [await spelled(context, text) for text in texts]
        taken = sum(each is not None for each in engine)
        for reader in (ours, registry):
            found = list(map(reader, texts))
            verdicts = list(map(verdict, engine, found))
            counts = Counter(verdicts)
            told = " | ".join(str(counts[each]) for each in ("same", "another", "refused", "more", "less"))
            print(f"| {len(texts)} {name} | {taken} | {reader.__name__} | {told} |", flush=True)
            for text, right, given, each in zip(texts, engine, found, verdicts, strict=True):
                if details and each in ("another", "more", "less"):
                    print(f"    {reader.__name__} {each}: {text!r} engine {right!r} reader {given!r}"[:300])
    for text in ("Int65", "Array(Int64", "DateTime('Mars/Olympus')", "Decimal(77, 1)", "Enum8('a' = 200)", "Strin"):
        print(f"  {text}: {refusals(text)}")
    speed(made)


def verdict(engine: str | None, found: str | None) -> str:
    if engine is None:
        return "refused" if found is None else "more"
    return "less" if found is None else "same" if found == engine else "another"


def speed(texts: Sequence[str]) -> None:
    """CPU microseconds for each type, nothing remembered."""
    from clickhouse_connect.datatypes import registry as theirs

    def uncached(text: str) -> object:
        theirs.type_cache.clear()
        return registry(text)

    def fresh(text: str) -> object:
        try:
            return parse.__wrapped__(text)
        except AaiclickError:
            return None

    readers: dict[str, Callable[[str], object]] = {"ours": fresh, "registry": uncached}
    for name, read in readers.items():
        rounds = []
        for _ in range(5):
            started = time.process_time()
            for text in texts:
                read(text)
            rounds.append((time.process_time() - started) / len(texts))
        print(f"{name}: {min(rounds) * 1e6:.1f} µs a type")


# ---------------------------------------------------------------- values


async def values(context: Context, details: bool) -> None:
    """How often each way keeps what it was given."""
    ways: dict[str, Callable[..., Any]] = {
        "ours": _by_ours,
        "ours, type given": _by_ours_typed,
        "pyarrow": _by_pyarrow,
        "pandas": _by_pandas,
        "polars": _by_polars,
        "clickhouse-connect, type given": _by_connect,
    }
    counts: dict[str, Counter[str]] = {way: Counter() for way in ways}
    for name, (given, kind) in VALUES.items():
        told = []
        for way, pass_through in ways.items():
            try:
                found = await pass_through(context, given, kind)
            except Exception as error:  # whatever it refuses with is what we want to know
                found, which = f"{type(error).__name__}: {error}", "refused"
            else:
                which = "kept" if is_kept(given, found) else "changed"
            counts[way][which] += 1
            told.append(f"{way}: {which}" + (f" {found!r}"[:90] if which == "changed" or details else ""))
        print(f"{name}: {'; '.join(told)}")
    print(f"| way | kept | refused | changed | of {len(VALUES)}\n|---|---|---|---|")
    for way, found in counts.items():
        print(f"| {way} | {found['kept']} | {found['refused']} | {found['changed']} |")


async def _by_ours(context: Context, given: list[Any], kind: str) -> Any:
    return await (await create_object_from_value(given)).data()


async def _by_ours_typed(context: Context, given: list[Any], kind: str) -> Any:
    return await (await create_object_from_value(given, fields={"value": kind})).data()


async def _by_pyarrow(context: Context, given: list[Any], kind: str) -> Any:
    import pyarrow as pa

    return await _through_file(context, pa.table({"value": pa.array(given)}))


async def _by_pandas(context: Context, given: list[Any], kind: str) -> Any:
    import pandas as pd
    import pyarrow as pa

    return await _through_file(context, pa.table({"value": pa.Array.from_pandas(pd.Series(given))}))


async def _by_polars(context: Context, given: list[Any], kind: str) -> Any:
    import polars as pl

    try:
        table = pl.DataFrame({"value": given}).to_arrow()
    except pl.exceptions.PanicException as panic:  # which is no Exception
        raise ValueError(str(panic)) from None
    return await _through_file(context, table)


async def _through_file(context: Context, table: Any) -> Any:
    """Into ClickHouse, which finds the types of the columns itself, and back."""
    import pyarrow as pa

    with TemporaryDirectory() as directory:
        path = str(Path(directory) / "given.arrow")
        with pa.ipc.new_file(path, table.schema) as sink:
            sink.write_table(table)
        await context.client.command("DROP TABLE IF EXISTS passed")
        source = f"SELECT * FROM file({quoting.text(path)}, 'Arrow')"
        await context.client.command(f"CREATE TABLE passed ENGINE = Memory AS {source}")
    found = await context.client.rows("SELECT value FROM passed")
    return list(found.columns[0])


async def _by_connect(context: Context, given: list[Any], kind: str) -> Any:
    """Its own insert and query, on the engine of this process."""
    made = await create_object({"value": kind})
    table = made.table

    def pass_through(client: Any) -> list[Any]:
        client.insert(table, [[value] for value in given], column_names=["value"])
        return list(client.query(f"SELECT value FROM {table}", tz_mode="aware").result_columns[0])

    return await context.client._now._run(pass_through)  # type: ignore[attr-defined]


async def with_data(chosen: Sequence[str], count: int, details: bool) -> None:
    with TemporaryDirectory() as root:
        os.environ["AAICLICK_LOCAL_ROOT"] = root
        reset_settings()
        async with data_context() as context:
            if "grammar" in chosen:
                await grammar(context, count, details)
            if "values" in chosen:
                await values(context, details)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    known = ("grammar", "values")
    parser.add_argument("chosen", nargs="*", default=known, choices=known)
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--details", action="store_true")
    given = parser.parse_args()
    logging.getLogger("clickhouse_connect").setLevel(logging.CRITICAL)
    print(machine())
    asyncio.run(with_data(given.chosen, given.count, given.details))


if __name__ == "__main__":
    main()
