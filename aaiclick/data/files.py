"""Objects from files and addresses, in ClickHouse's formats: ClickHouse reads them itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from aaiclick.data import sql
from aaiclick.data.reading import FORMATS
from aaiclick.errors import InputError
from aaiclick.urls import mask_url, shown

if TYPE_CHECKING:
    import pyarrow as pa

_PACKED = (".gz", ".zst", ".lz4", ".xz", ".bz2")
_SCHEMES = ("http", "https")


def file_source(path: str | os.PathLike[str], file_format: str | None) -> str:
    """A table function that reads a file of the machine on which the engine runs."""
    found = existing(path)
    return f"file({sql.text(str(found))}, {sql.text(format_of(found.name, file_format))})"


def url_source(url: str, file_format: str | None) -> str:
    """A table function that reads what is at an address."""
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES or not parts.netloc:
        rule = "an address that begins with http:// or https://"
        raise InputError(field="url", value=shown(mask_url(url)), rule=rule, hint="")
    return f"url({sql.text(url)}, {sql.text(format_of(parts.path, file_format))})"


def existing(path: str | os.PathLike[str]) -> Path:
    found = Path(path).expanduser().resolve()
    if not found.is_file():
        raise InputError(field="path", value=shown(str(path)), rule="there is no such file", hint="")
    return found


def format_of(name: str, file_format: str | None) -> str:
    """ClickHouse's name of a file's format, given or told by its ending."""
    if file_format is None:
        stem, ending = os.path.splitext(name.lower())
        if ending in _PACKED:
            ending = os.path.splitext(stem)[1]
        file_format = FORMATS.get(ending)
    if file_format is None or not file_format.isalnum():
        rule = f"its format is not known by its ending ({', '.join(FORMATS)})"
        raise InputError(field="file_format", value=shown(name), rule=rule, hint="Give it, such as 'Parquet'.")
    return file_format


def read_here(path: str | os.PathLike[str], file_format: str | None) -> pa.Table:
    """A file read in this process, for an engine on another machine."""
    import pyarrow.csv  # here, to keep start-up light
    import pyarrow.feather
    import pyarrow.json
    import pyarrow.orc
    import pyarrow.parquet

    readers: dict[str, Any] = {
        "Parquet": pyarrow.parquet.read_table,
        "CSVWithNames": pyarrow.csv.read_csv,
        "JSONEachRow": pyarrow.json.read_json,
        "Arrow": pyarrow.feather.read_table,
        "ORC": pyarrow.orc.read_table,
    }
    found = existing(path)
    known = format_of(found.name, file_format)
    if known not in readers:
        rule = f"a file that is sent to a server is one of {', '.join(readers)}"
        raise InputError(field="file_format", value=known, rule=rule, hint="Put it where the server can read it.")
    return readers[known](str(found))
