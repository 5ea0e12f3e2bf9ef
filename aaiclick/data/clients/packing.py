"""Pack files while they are written, by their ending or as requested."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from contextlib import AbstractContextManager, nullcontext
from typing import IO, Any, NamedTuple

from aaiclick.errors import InputError
from aaiclick.urls import did_you_mean, shown

PACKINGS = ("gz", "zst", "lz4", "xz", "bz2")
CODECS = {"none": "none", "snappy": "snappy", "gz": "gzip", "zst": "zstd", "lz4": "lz4", "brotli": "brotli"}
"""The compressions of Parquet's columns, by the names that ClickHouse and Arrow give them."""


_OF_ARROW = {"zst": "zstd", "lz4": "lz4"}


class Packing(NamedTuple):
    """How a file is packed as a whole, and how the columns in it are."""

    whole: str = ""
    codec: str = ""


AS_IT_IS = Packing()


def ending_of(path: str) -> tuple[str, str]:
    """Return the ending of a file's name that tells its format, and the ending of a packing after it."""
    stem, ending = os.path.splitext(path.lower())
    if ending[1:] in PACKINGS:
        return os.path.splitext(stem)[1], ending[1:]
    return ending, ""


def read_packing(path: str, file_format: str, compression: object) -> Packing:
    """Return the packing that was asked for: for Parquet the codec of columns, for other formats that of the file.

    Without a request the ending decides. Raise InputError if the two contradict each other.
    """
    _, told = ending_of(path)
    if compression is None:
        return Packing(told)
    known = [*CODECS] if file_format == "Parquet" else [*PACKINGS, "none"]
    if compression not in known:
        hint = did_you_mean(str(compression), known)
        rule = f"it must be one of {', '.join(known)}"
        raise InputError(field="compression", value=shown(repr(compression)), rule=rule, hint=hint)
    if file_format == "Parquet":
        return Packing(told, CODECS[str(compression)])
    whole = "" if compression == "none" else str(compression)
    if told and told != whole:
        hint = "Leave the compression out, or choose another ending."
        rule = f"the ending of the path says {told}"
        raise InputError(field="compression", value=shown(repr(compression)), rule=rule, hint=hint)
    return Packing(whole)


def packed(file: IO[bytes], packing: str) -> AbstractContextManager[Any]:
    """Return a context for a stream that packs what is written to it into the file; the file stays open."""
    import pyarrow as pa  # here, to keep start-up light

    match packing:
        case "":
            return nullcontext(file)
        case "gz":
            return gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0)
        case "bz2":
            return bz2.BZ2File(file, "wb")
        case "xz":
            return lzma.LZMAFile(file, "wb")
    found: AbstractContextManager[Any] = pa.CompressedOutputStream(_Open(file), _OF_ARROW[packing])
    return found


class _Open:
    """A file that stays open when its wrapper is closed."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.closed = False

    def write(self, data: bytes) -> int:
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False
