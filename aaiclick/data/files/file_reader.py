"""Opens files and URLs: as table functions that ClickHouse reads, or in this process for a remote server."""

from __future__ import annotations

import io
import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from aaiclick.data.parsing.file_options import Options
from aaiclick.data.results.reading import FORMATS
from aaiclick.data.sql import quoting
from aaiclick.errors import InputError
from aaiclick.urls import mask_url, shown

if TYPE_CHECKING:
    import pyarrow as pa

_PACKED = (".gz", ".zst", ".lz4", ".xz", ".bz2")
_SCHEMES = ("http", "https")


class FileSource(NamedTuple):
    """A source of rows: the beginning of a table function's call, a name for errors, and ClickHouse's format."""

    call: str
    name: str
    format: str
    given: str
    """The format that was given or follows from the ending, with `WithNames` if it has that."""
    text: str = ""
    """A query that gives the whole text, used instead of a table function."""
    place: str = ""
    """Where such a text comes from, for the log of operations."""

    def of(self, file_format: str) -> FileSource:
        """Return the same source, read in another format."""
        return self._replace(format=file_format)

    def table(self, structure: str = "", options: Options | None = None) -> str:
        """Return the complete table function."""
        packed = "auto" if options is None else options.compression
        inside = [self.call, quoting.text(self.format)]
        inside += [quoting.text(structure or "auto")] if structure or packed != "auto" else []
        inside += [quoting.text(packed)] if packed != "auto" else []
        if self.text:
            inside = [
                f"format({quoting.text(self.format)}",
                *([quoting.text(structure)] if structure else []),
                f"({self.text})",
            ]
        return f"{', '.join(inside)})"

    @property
    def noted(self) -> str:
        """The source as it is kept in the log of operations, with secrets in its URL masked."""
        return mask_url(self.place or self.table())


def file_source(path: str | os.PathLike[str], file_format: str | None) -> FileSource:
    """Return a table function that reads a file on the machine where the engine runs."""
    found = existing(path)
    known = format_of(found.name, file_format)
    return FileSource(f"file({quoting.text(_no_glob(str(found)))}", shown(found.name), known, known)


def _no_glob(path: str) -> str:
    """Return the path; raise InputError if it has a glob character of ClickHouse's: it could match other files."""
    if any(sign in path for sign in "*?{}"):
        rule = "its path contains one of * ? { }, which ClickHouse reads as a pattern"
        raise InputError(field="path", value=shown(path), rule=rule, hint="Rename it, or move it.")
    return path


def url_source(url: str, file_format: str | None) -> FileSource:
    """Return a table function that reads a URL; ClickHouse follows no redirects."""
    parts = urlsplit(str(url))
    if parts.scheme not in _SCHEMES or not parts.netloc:
        rule = "it must begin with http:// or https://"
        raise InputError(field="url", value=shown(mask_url(str(url))), rule=rule, hint="")
    known = format_of(parts.path, file_format)
    return FileSource(f"url({quoting.text(url)}", shown(mask_url(url)), known, known)


def existing(path: str | os.PathLike[str]) -> Path:
    found = Path(path).expanduser().resolve()
    if not found.is_file():
        raise InputError(field="path", value=shown(str(path)), rule="there is no such file", hint="")
    return found


def format_of(name: str, file_format: str | None) -> str:
    """Return ClickHouse's name of a format: the given one, or the one of the file's ending (of `a.csv.gz`, `.csv`)."""
    if file_format is None:
        stem, ending = os.path.splitext(name.lower())
        if ending in _PACKED:
            ending = os.path.splitext(stem)[1]
        file_format = FORMATS.get(ending)
    if file_format is None or not file_format.isalnum():
        rule = f"its ending does not tell its format ({', '.join(FORMATS)})"
        raise InputError(field="format", value=shown(name), rule=rule, hint="Give it, such as 'Parquet'.")
    return file_format


class CellTable(NamedTuple):
    """The cells of a CSV file as texts, with the names of its first row; the columns of the data are c1, c2 …"""

    names: list[str]
    data: pa.Table


def format_here(path: str | os.PathLike[str], file_format: str | None) -> str:
    """Return the format of a file that is sent to a server; raise InputError if this process cannot read it."""
    known = format_of(existing(path).name, file_format)
    if known not in _SENT:
        rule = f"a file that is sent to a server must be one of {', '.join(_SENT)}"
        raise InputError(field="format", value=known, rule=rule, hint="Put it where the server can read it.")
    return known


def read_here(path: str | os.PathLike[str], file_format: str) -> pa.Table:
    """Read a file that has types (Parquet, Arrow, ORC) in this process, for an engine on another machine."""
    import pyarrow.feather  # here, to keep start-up light
    import pyarrow.orc
    import pyarrow.parquet

    readers: dict[str, Any] = {
        "Parquet": pyarrow.parquet.read_table,
        "Arrow": pyarrow.feather.read_table,
        "ORC": pyarrow.orc.read_table,
    }
    return readers[file_format](str(existing(path)))


def read_cells(path: str | os.PathLike[str]) -> CellTable:
    """Read the cells of a CSV file as texts, unchanged."""
    import pyarrow as pa  # here, to keep start-up light
    from pyarrow import csv

    found = existing(path)
    given: dict[str, Any] = {
        "read_options": csv.ReadOptions(autogenerate_column_names=True),
        "parse_options": csv.ParseOptions(newlines_in_values=True),
    }
    try:
        with csv.open_csv(str(found), **given) as reader:
            places = reader.schema.names
        texts = csv.ConvertOptions(column_types=dict.fromkeys(places, pa.string()), null_values=[])
        data = csv.read_csv(str(found), convert_options=texts, **given)
    except pa.ArrowInvalid as error:
        raise _unread(found, str(error)) from None
    names = [str(column[0].as_py()).removeprefix("\ufeff") for column in data.columns]
    return CellTable(names, data.rename_columns([f"c{place}" for place in range(1, len(names) + 1)]))


def read_lines(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read JSON lines into columns: lists of plain values, or Arrow arrays (of lists, objects, or nothing but None)."""
    import pyarrow as pa  # here, to keep start-up light

    found, rows = existing(path), []
    with pa.input_stream(str(found)) as stream:  # decompresses by the file's ending
        for number, line in enumerate(io.BufferedReader(stream), 1):
            try:
                row = json.loads(line, parse_float=_finite, parse_constant=_finite) if line.strip() else {}
            except (ValueError, RecursionError) as error:
                raise _unread(found, f"line {number}: {error}") from None
            if not isinstance(row, dict):
                raise _unread(found, f"line {number} is not an object")
            rows += [row] if row else []
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _as_arrow(found, name, [row.get(name) for row in rows]) for name in names}


def _as_arrow(path: Path, name: str, column: list[Any]) -> Any:
    import pyarrow as pa  # here, to keep start-up light

    if all(value is None for value in column):
        return pa.nulls(len(column), pa.string())
    if not any(isinstance(value, dict | list) for value in column):
        return column
    try:
        return pa.array(column)
    except (pa.ArrowException, OverflowError) as error:
        raise _unread(path, f"column {name}: {error}") from None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a number, or is too large")
    return number


def _unread(path: Path, why: str) -> InputError:
    rule = f"it cannot be read: {shown(why)}"
    return InputError(field="file", value=shown(path.name), rule=rule, hint="Check the format.")


_SENT = ("Parquet", "CSVWithNames", "JSONEachRow", "Arrow", "ORC")
