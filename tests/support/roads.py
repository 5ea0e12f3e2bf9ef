"""Every road on which a time comes into the data room, and what Python makes of times, to be compared.

As a program, it walks all roads in a process of its own, whose zone is that of the variable TZ.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.orc as orc
import pyarrow.parquet as parquet

from aaiclick.data import (
    Object,
    col,
    create_object,
    create_object_from_file,
    create_object_from_value,
    data_context,
    lit,
    open_object,
)
from aaiclick.data.browsing import query_rows
from aaiclick.errors import ObjectNotFound

Road = Callable[[Path, datetime], Awaitable[Object]]

KEPT, GROWN = "kept_times", "grown_times"
TIMES = [
    datetime(2024, 1, 2, 3, 4, 5, 678901),  # noqa: DTZ001
    datetime(2024, 7, 1, 0, 0, 0, 1),  # noqa: DTZ001
    datetime(2026, 3, 29, 2, 30),  # noqa: DTZ001  # left out in Rome, and in New York on another day
    datetime(2026, 3, 8, 2, 30),  # noqa: DTZ001
    datetime(1969, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
    datetime(1900, 1, 1),  # noqa: DTZ001
    datetime(2299, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
]


def _zone(time: datetime) -> str | None:
    return None if time.tzinfo is None else str(time.tzinfo)


def _array(time: datetime) -> pa.Array:
    return pa.array([time], pa.timestamp("us", _zone(time)))


async def _text_file(folder: Path, name: str, text: str, **options: Any) -> Object:
    path = folder / name
    path.write_text(text)
    return await create_object_from_file(path, **options)


async def _arrow_file(folder: Path, name: str, time: datetime, write: Callable[[pa.Table, str], Any]) -> Object:
    path = folder / name
    write(pa.table({"t": _array(time)}), str(path))
    return await create_object_from_file(path)


def _type(time: datetime) -> str:
    return "DateTime64(6)" if time.tzinfo is None else f"DateTime64(6, '{time.tzinfo}')"


async def _inserted(folder: Path, time: datetime) -> Object:
    made = await create_object({"t": _type(time)})
    await made.insert({"t": [time]})
    return made


async def _moved(folder: Path, time: datetime) -> Object:
    made = await create_object({"t": _type(time)})
    await made.insert(await create_object_from_value({"t": [time]}))
    return made


async def _exported(folder: Path, time: datetime, ending: str) -> Object:
    path = folder / f"exported.{ending}"
    path.unlink(missing_ok=True)
    await (await create_object_from_value({"t": [time]})).export(str(path))
    return await create_object_from_file(path)


def _export(ending: str) -> Road:
    return lambda folder, time: _exported(folder, time, ending)


ROADS: dict[str, Road] = {
    "list": lambda folder, time: create_object_from_value({"t": [time]}),
    "record": lambda folder, time: create_object_from_value({"t": time}),
    "dicts": lambda folder, time: create_object_from_value([{"t": time}]),
    "pandas": lambda folder, time: create_object_from_value(pd.DataFrame({"t": [time]})),
    "pandas timestamps": lambda folder, time: create_object_from_value({"t": [pd.Timestamp(time)]}),
    "polars": lambda folder, time: create_object_from_value(
        pl.DataFrame({"t": pl.Series([time], dtype=pl.Datetime("us", _zone(time)))})
    ),
    "arrow": lambda folder, time: create_object_from_value(pa.table({"t": _array(time)})),
    "csv": lambda folder, time: _text_file(folder, "t.csv", f"t\n{time}\n"),
    "tsv": lambda folder, time: _text_file(folder, "t.tsv", f"t\n{time.isoformat()}\n"),
    "json": lambda folder, time: _text_file(folder, "t.jsonl", json.dumps({"t": time.isoformat()})),
    "fields": lambda folder, time: _text_file(folder, "f.csv", f"t\n{time}\n", fields={"t": _type(time)}),
    "parquet": lambda folder, time: _arrow_file(folder, "t.parquet", time, parquet.write_table),
    "arrow file": lambda folder, time: _arrow_file(
        folder, "t.arrow", time, lambda table, path: feather.write_feather(table, path, compression="uncompressed")
    ),
    "insert": _inserted,
    "insert a frame": _moved,
    "query": lambda folder, time: _computed(time),
    **{f"export {ending}": _export(ending) for ending in ("parquet", "arrow", "csv", "tsv", "json", "jsonl")},
}

SHORT_ROADS: dict[str, Road] = {
    "numpy": lambda folder, time: create_object_from_value({"t": np.array([time], dtype="datetime64[us]")}),
    "numpy scalars": lambda folder, time: create_object_from_value({"t": [np.datetime64(time)]}),
}
"""Roads on which only times without a zone come."""

NEAR_ROADS: dict[str, Road] = {
    "pandas nanoseconds": lambda folder, time: create_object_from_value(
        pd.DataFrame({"t": pd.Series([time], dtype="datetime64[ns]" if time.tzinfo is None else None)})
    ),
    "orc": lambda folder, time: _arrow_file(folder, "t.orc", time, orc.write_table),
    "export orc": _export("orc"),
}
"""Roads that end with nanoseconds in 2262."""


async def _computed(time: datetime) -> Object:
    made = await create_object_from_value({"n": [1]})
    return await made.with_columns(t=lit(time))[["t"]]


async def walk_roads(folder: Path, time: datetime) -> dict[str, str]:
    """What went wrong, by the roads on which it did."""
    roads = {**ROADS, **(SHORT_ROADS if time.tzinfo is None else {}), **(NEAR_ROADS if time.year < 2262 else {})}
    wrong = {}
    for name, road in roads.items():
        if problem := await difference(await road(folder, time), time):
            wrong[f"{name}: {time}"] = problem
    return wrong


async def difference(made: Object, time: datetime) -> str:
    """How an Object of one time differs from it; nothing if it does not."""
    found = await made.data(orient="records")
    arrow = (await made.arrow())["t"]
    frame = (await made.df())["t"][0]
    want = [{"t": time}]
    if [_same(row["t"]) for row in found] != [_same(time)]:
        return f"data() gives {found} for {want}"
    if pa.types.is_timestamp(arrow.type) is False or (arrow.type.tz is None) != (time.tzinfo is None):
        return f"arrow() gives {arrow.type}"
    if (frame.tzinfo is None) != (time.tzinfo is None) or frame != pd.Timestamp(time):
        return f"df() gives {frame!r}"
    return ""


def _same(time: datetime) -> tuple[bool, float | datetime]:
    return time.tzinfo is None, time if time.tzinfo is None else time.timestamp()


# ---------------------------------------------------------------- what Python makes of them


def towards_2000(t: Any) -> Any:
    """A second on or back, which stays in the range of times."""
    return (t.year() > 2000).choose(-1, 1)


MEANINGS: dict[str, tuple[Callable[[Any], Any], Callable[[datetime], Any]]] = {
    "year": (lambda t: t.year(), lambda t: t.year),
    "month": (lambda t: t.month(), lambda t: t.month),
    "day": (lambda t: t.day(), lambda t: t.day),
    "hour": (lambda t: t.hour(), lambda t: t.hour),
    "minute": (lambda t: t.minute(), lambda t: t.minute),
    "second": (lambda t: t.second(), lambda t: t.second),
    "weekday": (lambda t: t.weekday(), lambda t: t.weekday()),
    "date": (lambda t: t.date(), lambda t: t.date()),
    "strftime": (
        lambda t: t.strftime("%Y-%m-%d %H:%M:%S.%f %a %A %b %B %d %j %y %I %p %w %u %G %V %%"),
        lambda t: t.strftime("%Y-%m-%d %H:%M:%S.%f %a %A %b %B %d %j %y %I %p %w %u %G %V %%"),
    ),
    "start of second": (lambda t: t.start_of("second"), lambda t: t.replace(microsecond=0)),
    "start of minute": (lambda t: t.start_of("minute"), lambda t: t.replace(second=0, microsecond=0)),
    "start of hour": (lambda t: t.start_of("hour"), lambda t: t.replace(minute=0, second=0, microsecond=0)),
    "start of day": (lambda t: t.start_of("day"), lambda t: t.replace(hour=0, minute=0, second=0, microsecond=0)),
    "start of week": (lambda t: t.start_of("week"), lambda t: t.date() - timedelta(days=t.weekday())),
    "start of month": (lambda t: t.start_of("month"), lambda t: t.date().replace(day=1)),
    "start of year": (lambda t: t.start_of("year"), lambda t: date(t.year, 1, 1)),
    "before": (lambda t: t < TIMES[0], lambda t: t < TIMES[0]),
    "the same": (lambda t: t == TIMES[0], lambda t: t == TIMES[0]),
    "after a text": (lambda t: t >= str(TIMES[0]), lambda t: t >= TIMES[0]),
    "among": (lambda t: t.isin([TIMES[0], TIMES[4]]), lambda t: t in (TIMES[0], TIMES[4])),
    "as text": (lambda t: t.cast(str), lambda t: t.strftime("%Y-%m-%d %H:%M:%S.%f")),
    "from text": (lambda t: t.cast(str).cast("DateTime64(6)"), lambda t: t),
    "as day": (lambda t: t.cast(date), lambda t: t.date()),
    "from day": (lambda t: t.date().cast("DateTime64(6)"), lambda t: datetime(t.year, t.month, t.day)),  # noqa: DTZ001
    "moved and back": (lambda t: t + towards_2000(t) - towards_2000(t), lambda t: t),
    "in UTC and back": (lambda t: t.tz_localize("UTC").tz_localize(None), lambda t: t),
}


async def compare_meanings(times: Object, expected: list[datetime] = TIMES) -> dict[str, str]:
    """Where ClickHouse and Python differ on times without a zone, in the column `t`."""
    wrong = {}
    made = await times.with_columns(**{name: meant(col("t")) for name, (meant, _) in MEANINGS.items()}).data()
    for name, (_, python) in MEANINGS.items():
        if made[name] != (want := [python(time) for time in expected]):
            wrong[name] = f"{made[name]} for {want}"
    assert await times.where("toHour(t) = 3").count() == sum(time.hour == 3 for time in expected)
    return wrong


async def grow() -> dict[str, str]:
    """Add rows to an Object that others made and added to before; all are the same."""
    time = TIMES[0].replace(microsecond=678_000)
    row = {"t": time, "s": time.replace(microsecond=0), "l": [time]}
    fields = {"t": "DateTime64(6)", "s": "DateTime", "l": "Array(DateTime64(3))"}
    try:
        grown = await open_object(GROWN)
    except ObjectNotFound:
        grown = await create_object(fields, name=GROWN)
    await grown.insert([row])
    await grown.insert(await create_object_from_value([row], fields=fields))
    await grown.insert(grown.limit(1))
    texts = (await create_object_from_value({"t": [str(time)], "s": [str(row["s"])]})).with_columns(l=lit([time]))
    await grown.insert(texts)
    found = await grown.data("records")
    return {f"row {number} of {GROWN}": str(each) for number, each in enumerate(found) if each != row}


async def main() -> None:
    folder = Path(sys.argv[1])
    async with data_context():
        try:
            kept = await open_object(KEPT)
        except ObjectNotFound:
            kept = await create_object_from_value({"t": TIMES}, name=KEPT)
        wrong = {**await compare_meanings(kept), **await grow()}
        told = await query_rows(f"SELECT toHour(t), toString(t) FROM {kept.table} ORDER BY t")
        if told.rows != (want := [(time.hour, time.strftime("%Y-%m-%d %H:%M:%S.%f")) for time in sorted(TIMES)]):
            wrong["a query of its own"] = f"{told.rows} for {want}"
        for time in (TIMES[0], TIMES[4]):
            wrong |= await walk_roads(folder, time)
    print(json.dumps({"zone": os.environ["TZ"], "wrong": wrong}))


if __name__ == "__main__":
    asyncio.run(main())
