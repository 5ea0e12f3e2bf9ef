"""Runs a query and reads its answer: as Python values, Arrow, pandas, files, or tables of text."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from aaiclick.data import display
from aaiclick.data.clients.contract import DataClient, Rows
from aaiclick.data.clients.packing import ending_of, read_packing
from aaiclick.data.clients.times import find_fine, has_nanoseconds
from aaiclick.data.compiling.select_sql import to_sql
from aaiclick.data.query.relations import Relation, Slice
from aaiclick.data.query.row_order import in_order, is_as_inserted
from aaiclick.data.results import exporting
from aaiclick.data.typing.schema import Shape
from aaiclick.errors import InputError, MissingExtra
from aaiclick.urls import shown

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN_ROWS = 10
AS_INSERTED = " SETTINGS max_threads = 1"
"""Gives the rows in the order of insertion. Reading is as fast, since one thread writes the answer anyway."""

FORMATS = {
    ".parquet": "Parquet",
    ".csv": "CSVWithNames",
    ".tsv": "TSVWithNames",
    ".json": "JSON",
    ".jsonl": "JSONEachRow",
    ".ndjson": "JSONEachRow",
    ".arrow": "Arrow",
    ".orc": "ORC",
    ".avro": "Avro",
    ".md": "Markdown",
    ".xml": "XML",
}
"""ClickHouse's names of formats, by the endings of files."""


async def data(client: DataClient, relation: Relation, shape: Shape, orient: str | None) -> Any:
    """Run a query and return its answer in the given shape, or as a list of dicts (orient="records")."""
    if orient not in (None, "records"):
        raise InputError(field="orient", value=repr(orient), rule="it must be None or 'records'", hint="")
    return shaped(_refuse_nanoseconds(await _rows(client, relation)), shape, orient)


def _refuse_nanoseconds(rows: Rows) -> Rows:
    """Raise InputError for times with nanoseconds, which Python's datetime cannot hold: they are not cut."""
    for name, kind, column in zip(rows.names, rows.types, rows.columns, strict=True):
        for row, value in enumerate(column if has_nanoseconds(kind) else ()):
            if (found := find_fine(value)) is not None:
                field = f"column {shown(name)}, row {row} (counted from 0)"
                hint = "Ask for arrow() or df(), or cut it with start_of('microsecond')."
                raise InputError(field=field, value=found, rule="Python's datetime only holds microseconds", hint=hint)
    return rows


def shaped(rows: Rows, shape: Shape, orient: str | None) -> Any:
    """Turn an answer into the Python value of a shape; raise InputError if a scalar or record has several rows."""
    if orient == "records":
        return [dict(zip(rows.names, row, strict=True)) for row in zip(*rows.columns, strict=True)]
    if shape == "list":
        return list(rows.columns[0])
    if shape == "table":
        return {name: list(column) for name, column in zip(rows.names, rows.columns, strict=True)}
    if rows.columns and len(rows.columns[0]) > 1:
        rule = f"it holds {len(rows.columns[0])} rows"
        raise InputError(field="data", value=f"a {shape}", rule=rule, hint='Ask for data(orient="records").')
    values = [column[0] if len(column) else None for column in rows.columns]
    return values[0] if shape == "scalar" else dict(zip(rows.names, values, strict=True))


async def _rows(client: DataClient, relation: Relation) -> Rows:
    return await client.rows(query_of(relation))


async def first_values(client: DataClient, relation: Relation, count: int) -> list[Any]:
    """Return the first `count` values of the relation's first column."""
    return list((await _rows(client, Slice(relation, count))).columns[0])


def query_of(relation: Relation) -> str:
    """Return the query for all rows, in their order."""
    return to_sql(in_order(relation)) + (AS_INSERTED if is_as_inserted(relation) else "")


async def arrow(client: DataClient, relation: Relation) -> pa.Table:
    return await client.arrow(query_of(relation))


async def df(client: DataClient, relation: Relation) -> Any:
    if importlib.util.find_spec("pandas") is None:
        raise MissingExtra(what="df()", package="pandas", extra="pandas")
    from aaiclick.data.typing.arrow_frames import to_frame  # here, to keep start-up light

    return to_frame(await arrow(client, relation))


async def count(client: DataClient, relation: Relation) -> int:
    found = await client.rows(f"SELECT count() FROM ({to_sql(relation)})")  # noqa: S608 (compiled)
    return int(found.columns[0][0])


async def markdown(client: DataClient, relation: Relation, limit: int) -> str:
    found = await _rows(client, Slice(relation, limit + 1))
    more = bool(found.columns) and len(found.columns[0]) > limit
    return display.markdown(found.names, [column[:limit] for column in found.columns], "and more" if more else "")


def _first(client: DataClient, relation: Relation) -> tuple[Rows, str]:
    found = client.rows_now(query_of(Slice(relation, SHOWN_ROWS + 1)))
    more = bool(found.columns) and len(found.columns[0]) > SHOWN_ROWS
    return found._replace(columns=[column[:SHOWN_ROWS] for column in found.columns]), "and more" if more else ""


def html(client: DataClient, relation: Relation) -> str:
    """Return the first rows as HTML, for notebooks. Blocks the calling thread."""
    found, note = _first(client, relation)
    return display.html(found.names, found.columns, note)


def plain(client: DataClient, relation: Relation) -> str:
    """Return the first rows as text, for terminals. Blocks the calling thread."""
    found, note = _first(client, relation)
    return display.text(found.names, found.columns, note)


async def export(
    client: DataClient, relation: Relation, path: str, file_format: str | None, compression: str | None
) -> int:
    """Write the answer into a new file and return its size in bytes. An existing file is never overwritten."""
    known = file_format or FORMATS.get(ending_of(path)[0])
    if known is None or not known.isalnum():
        rule = f"its ending does not tell its format ({', '.join(FORMATS)})"
        raise InputError(field="path", value=path, rule=rule, hint="Give file_format, such as 'Parquet'.")
    packing = read_packing(path, known, compression)
    try:
        return await exporting.write(client, query_of(relation), known, path, packing)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        rule = f"it cannot be written: {error.strerror}"
        raise InputError(field="path", value=shown(path), rule=rule, hint="") from None
    except FileExistsError:
        raise InputError(
            field="path", value=path, rule="the file exists already", hint="Remove the file, or choose another path."
        ) from None
