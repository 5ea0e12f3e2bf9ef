"""Writes the answer to a query into a file, so that times are read back unchanged.

Left alone, ClickHouse writes all times of Parquet and Arrow as moments in UTC, those of ORC as if they had no zone,
and times in texts without an offset, whether they have a zone or not.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

from aaiclick.data.clients.contract import DataClient
from aaiclick.data.clients.packing import AS_IT_IS, Packing, packed
from aaiclick.data.sql import quoting
from aaiclick.data.typing.grammar import Type, parse
from aaiclick.data.typing.types import clock_of_type, has_naive
from aaiclick.errors import InputError
from aaiclick.urls import shown

if TYPE_CHECKING:
    import pyarrow as pa

AS_MOMENTS = {"date_time_output_format": "iso"}
"""A setting with which times in texts are written in UTC, with the mark `Z`."""

_AVRO = re.compile(r"\bDateTime64\([36], ")
_BINARY = ("Native", "RowBinary", "MsgPack", "Npy", "BSONEachRow", "CapnProto", "Protobuf")


async def write(client: DataClient, query: str, file_format: str, path: str, packing: Packing = AS_IT_IS) -> int:
    """Write the answer to a query into a new file and return the number of bytes."""
    settings: dict[str, object] = {"output_format_parquet_compression_method": packing.codec} if packing.codec else {}
    found = await client.rows(f"DESCRIBE TABLE ({query})")
    kinds = dict(zip(*found.columns[:2], strict=True))
    naive = any(map(has_naive, kinds.values()))
    aware = any(_has_aware(kind) for kind in kinds.values())
    if file_format in _WRITERS:
        lost = aware if file_format == "ORC" else naive or (file_format != "Parquet" and aware)
        if lost:
            return await _write_arrow(client, query, file_format, path, packing)
    elif file_format.startswith("Avro"):
        _refuse_for_avro(file_format, kinds)
    elif aware and not file_format.startswith(_BINARY):
        told = _naive_as_texts(query, kinds) if naive else query
        return await client.save(told, file_format, path, AS_MOMENTS, packing.whole)
    return await client.save(query, file_format, path, settings, packing.whole)


def _refuse_for_avro(file_format: str, kinds: Mapping[str, str]) -> None:
    """Raise InputError for times that Avro cannot hold.

    ClickHouse writes moments of milliseconds and microseconds to Avro, and plain numbers for all other times.
    """
    for name, kind in kinds.items():
        if "DateTime" in kind and not _AVRO.search(kind):
            rule = (
                f"column {shown(name)} is {kind}, and this format only holds times with a zone and 3 or 6 digits "
                "of a second"
            )
            raise InputError(field="format", value=file_format, rule=rule, hint="Cast it, or write Parquet.")


def _has_aware(kind: str) -> bool:
    return clock_of_type(kind) == "aware" or ("DateTime" in kind and "'" in kind)


def _naive_as_texts(query: str, kinds: Mapping[str, str]) -> str:
    """Return the query with zoneless times cast to texts: AS_MOMENTS would otherwise give them the zone UTC."""
    columns = {name: str(_texts(parse(kind))) for name, kind in kinds.items() if has_naive(kind)}
    casts = ", ".join(
        f"CAST({quoting.name(name)}, {quoting.text(kind)}) AS {quoting.name(name)}" for name, kind in columns.items()
    )
    return f"SELECT * REPLACE ({casts}) FROM ({query})"  # noqa: S608 (compiled)


def _texts(kind: Type) -> Type:
    if kind.parts:
        return replace(kind, parts=tuple(map(_texts, kind.parts)))
    return Type("String") if kind.clock == "naive" else kind


# ---------------------------------------------------------------- formats that Arrow writes


async def _write_arrow(client: DataClient, query: str, file_format: str, path: str, packing: Packing) -> int:
    import pyarrow as pa  # here, to keep start-up light

    file: IO[bytes] = await asyncio.to_thread(open, path, "xb")
    try:
        with packed(file, packing.whole) as into:
            writer = None
            async for batch in client.batches(query):
                writer = writer or _WRITERS[file_format](into, batch.schema, packing.codec)
                await asyncio.to_thread(writer.write, pa.table(batch))
            if writer is None:
                rows = await client.arrow(query)
                writer = _WRITERS[file_format](into, rows.schema, packing.codec)
                writer.write(rows)
            writer.close()
    except BaseException as error:
        os.unlink(path)  # leave no half-written file
        if isinstance(error, pa.ArrowException):
            rule = f"Arrow cannot write it: {error}"
            raise InputError(field="format", value=file_format, rule=rule, hint="") from None
        raise
    finally:
        file.close()
    return (await asyncio.to_thread(os.stat, path)).st_size


def _parquet(file: IO[bytes], schema: pa.Schema, codec: str) -> Any:
    from pyarrow import parquet  # here, to keep start-up light

    return parquet.ParquetWriter(file, schema, compression=codec or "snappy")


def _orc(file: IO[bytes], schema: pa.Schema, codec: str) -> Any:
    from pyarrow import orc  # here, to keep start-up light

    return orc.ORCWriter(file)


def _arrow(file: IO[bytes], schema: pa.Schema, codec: str) -> Any:
    import pyarrow as pa  # here, to keep start-up light

    return pa.ipc.new_file(file, schema)


def _arrow_stream(file: IO[bytes], schema: pa.Schema, codec: str) -> Any:
    import pyarrow as pa  # here, to keep start-up light

    return pa.ipc.new_stream(file, schema)


_WRITERS: dict[str, Callable[[IO[bytes], Any, str], Any]] = {
    "Parquet": _parquet,
    "ORC": _orc,
    "Arrow": _arrow,
    "ArrowStream": _arrow_stream,
}
