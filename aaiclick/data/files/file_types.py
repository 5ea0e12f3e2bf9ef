"""The column types of files that have types, with corrected time zones.

ClickHouse reads every time of Parquet as UTC, and those of Avro, which are moments, as if they had no zone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from aaiclick.data.files.file_reader import FileSource
from aaiclick.data.parsing.file_options import Options
from aaiclick.data.sql import quoting
from aaiclick.data.typing.grammar import Type, parse
from aaiclick.errors import DataRefused, InputError

if TYPE_CHECKING:
    from aaiclick.data.clients.contract import DataClient

CAUSE_MAX = 300
ALL = 2**63 - 1

TO_GUESS = {
    "input_format_try_infer_dates": 0,
    "input_format_try_infer_datetimes": 0,
    "input_format_max_rows_to_read_for_schema_inference": ALL,
    "input_format_max_bytes_to_read_for_schema_inference": ALL,
    "schema_inference_use_cache_for_file": 0,
    "schema_inference_use_cache_for_url": 0,
}
"""Settings: ClickHouse guesses types from all rows, and never guesses that a text is a time."""

_OFFSET = re.compile(r"'Fixed/UTC[^']*'")
_AVRO, _ARROW = ("Avro", "AvroConfluent"), ("Arrow", "ArrowStream", "Feather")


class Leaf(NamedTuple):
    """An innermost column of a Parquet file; it may be nested in others."""

    physical: str
    logical: str

    @property
    def is_naive(self) -> bool:
        """Whether its times have no zone; the old INT96 does not tell, and counts as having none."""
        return "isAdjustedToUTC=false" in self.logical or self.physical == "INT96"


async def described(client: DataClient, source: FileSource, options: Options) -> dict[str, str]:
    """Return the types of a file's columns by name."""
    try:
        found = await client.rows(f"DESCRIBE TABLE {source.table('', options)}", TO_GUESS)
        kinds = dict(zip(*found.columns[:2], strict=True))
        if source.format == "Parquet":
            return _of_parquet(kinds, await _leaves(client, source, options), source)
    except DataRefused as error:
        raise unreadable(source, error) from error
    if source.format in _AVRO:
        return {name: _with(kind, lambda leaf: replace(leaf, zone=leaf.zone or "UTC")) for name, kind in kinds.items()}
    if source.format in _ARROW:
        _refuse_days_of_milliseconds(kinds, source)
        return {name: _OFFSET.sub("'UTC'", kind) for name, kind in kinds.items()}
    return kinds


def structure_of(kinds: Mapping[str, str]) -> str:
    """Return the columns as the structure argument of a table function."""
    return ", ".join(f"{quoting.name(name)} {kind}" for name, kind in kinds.items())


def unreadable(source: FileSource, error: DataRefused) -> InputError:
    """Return the InputError for an unreadable file: refused redirects, or ClickHouse's message, which names the row."""
    cause = str(error.facts["cause"])
    if "Too many redirects" in cause:
        rule = "it redirects elsewhere, and no redirects are followed"
        hint = "Give redirects=… if you trust every address on the way, or give the final address."
        return InputError(field="url", value=source.name, rule=rule, hint=hint)
    told = cause if len(cause) <= CAUSE_MAX else f"{cause[:CAUSE_MAX]}…"
    rule = f"ClickHouse cannot read it as {source.given}: {told}"
    return InputError(field="file", value=source.name, rule=rule, hint="Check the format.")


def _refuse_days_of_milliseconds(kinds: Mapping[str, str], source: FileSource) -> None:
    """Raise InputError for Arrow's date64: ClickHouse reads its milliseconds as seconds, and gets other days."""
    for name, kind in kinds.items():
        if re.search(r"\bDateTime\b", kind):
            rule = f"its column {name} is a date64, which ClickHouse would change into other days"
            hint = "Cast it to date32, or read it with pyarrow and give it to create_object_from_value."
            raise InputError(field="file", value=source.name, rule=rule, hint=hint)


# ---------------------------------------------------------------- Parquet


async def _leaves(client: DataClient, source: FileSource, options: Options) -> list[Leaf]:
    """Return the innermost columns of a Parquet file, in their order."""
    table = source.of("ParquetMetadata").table("", options)
    told = "arrayMap(c -> (tupleElement(c, 'physical_type'), tupleElement(c, 'logical_type')), columns)"
    found = await client.rows(f"SELECT {told} FROM {table}")  # noqa: S608 (quoted)
    return [Leaf(*each) for each in found.columns[0][0]]


def _of_parquet(kinds: Mapping[str, str], leaves: list[Leaf], source: FileSource) -> dict[str, str]:
    if not any(leaf.is_naive for leaf in leaves):
        return dict(kinds)
    following = iter(leaves)
    try:
        found = {name: str(_as_told(parse(kind), following)) for name, kind in kinds.items()}
    except (InputError, StopIteration):
        found = {}
    if not found or next(following, None) is not None:
        rule = "it has times without a zone beside columns that are not known here"
        hint = "Read it with pyarrow, and give it to create_object_from_value."
        raise InputError(field="file", value=source.name, rule=rule, hint=hint)
    return found


def _as_told(kind: Type, leaves: Iterator[Leaf]) -> Type:
    """Return the type with the zone removed from its naive times; takes its innermost parts from `leaves` in order."""
    if kind.parts:
        return replace(kind, parts=tuple(_as_told(part, leaves) for part in kind.parts))
    leaf = next(leaves)
    return replace(kind, zone="") if leaf.is_naive and kind.clock else kind


def _with(kind: str, change: Callable[[Type], Type]) -> str:
    """Apply `change` to every time type inside of a type."""
    with suppress(InputError):  # a type that is not known here has no times
        return str(_changed(parse(kind), change))
    return kind


def _changed(kind: Type, change: Callable[[Type], Type]) -> Type:
    if kind.parts:
        return replace(kind, parts=tuple(_changed(part, change) for part in kind.parts))
    return change(kind) if kind.clock else kind
