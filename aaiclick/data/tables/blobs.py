"""Stores long texts as tables, for arguments and results of tasks that are too large for the SQL database."""

from __future__ import annotations

from typing import Any

from aaiclick.data.clients.contract import DataClient
from aaiclick.data.clients.tables import NewTable
from aaiclick.data.sql import quoting
from aaiclick.data.tables.lifetimes import make_anew, new_mark
from aaiclick.data.typing.schema import Schema
from aaiclick.errors import ObjectNotFound

PART_CHARS = 4_000_000


async def write_blob(client: DataClient, table: str, text: str, **facts: Any) -> None:
    """Store a text in a new table, with these facts in the table's comment."""
    import pyarrow as pa  # here, to keep start-up light

    mark = new_mark()
    comment = Schema((), "table").table_comment(**facts, made=mark)
    columns, names = "number UInt32, part String", ("number", "part")
    new = NewTable(table, "number", comment, columns, names, tokens=True)
    await make_anew(client, table, mark, lambda: client.tables.make(client, new))
    parts = [text[start : start + PART_CHARS] for start in range(0, len(text), PART_CHARS)]
    numbers = pa.array(range(len(parts)), pa.uint32())
    await client.insert(table, pa.table({"number": numbers, "part": pa.array(parts, pa.string())}))


async def read_blob(client: DataClient, table: str) -> str:
    """Return the text that `write_blob` stored; raise ObjectNotFound if the table is gone."""
    exists = await client.rows(f"EXISTS TABLE {quoting.name(table)}")
    if not exists.columns[0][0]:
        raise ObjectNotFound(name=table, hint="It was dropped with its job's tables, after AAICLICK_JOB_TTL.")
    found = await client.arrow(f"SELECT part FROM {quoting.name(table)} ORDER BY number")  # noqa: S608 (quoted)
    return "".join(_text(part) for part in found.column(0).to_pylist())


def _text(part: str | bytes) -> str:
    return part.decode() if isinstance(part, bytes) else part
