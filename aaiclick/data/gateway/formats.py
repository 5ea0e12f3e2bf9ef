"""Formats of answers: their content types, and how the pieces of a streamed answer are joined.

chdb writes every block as a complete document of its format. Documents without a frame around their rows can be
concatenated; of some others the frame can be removed; answers in the remaining formats are not streamed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Protocol

DEFAULT = "TabSeparated"

_ARROW_END = b"\xff\xff\xff\xff\0\0\0\0"
_CSV_LINE = rb'(?:[^"\n]++|"(?:[^"]|"")*+")*+\n'
_LINE = rb"[^\n]*+\n"
_ROWS = (
    "tabseparated tsv tabseparatedraw tsvraw raw csv rowbinary native jsoneachrow jsonlines ndjson jsoncompacteachrow"
)
_MORE_ROWS = "jsonstringseachrow jsoncompactstringseachrow lineasstring"
_HEADED_LINES = "tabseparated tsv tabseparatedraw tsvraw jsoncompacteachrow jsoncompactstringseachrow"
_FRAMELESS = frozenset(f"{_ROWS} {_MORE_ROWS}".split())


class Joiner(Protocol):
    """Joins many documents into one."""

    def add(self, piece: bytes) -> bytes: ...

    def end(self) -> bytes: ...


class Frameless:
    """Joins documents without a frame, which stay as they are."""

    def add(self, piece: bytes) -> bytes:
        return piece

    def end(self) -> bytes:
        return b""


class Headed:
    """Joins documents with lines of names, and maybe of types, before the rows: only the first keeps these lines."""

    def __init__(self, line: bytes, lines: int) -> None:
        self._head_of = re.compile(line * lines)
        self._head: bytes | None = None

    def add(self, piece: bytes) -> bytes:
        if self._head is None:
            found = self._head_of.match(piece)
            self._head = found[0] if found else b""
            return piece
        return piece.removeprefix(self._head)

    def end(self) -> bytes:
        return b""


class ArrowStream:
    """Joins Arrow streams: only the first keeps its schema, and one end is written."""

    def __init__(self) -> None:
        self._begun = False

    def add(self, piece: bytes) -> bytes:
        if not piece:
            return piece
        begin = 8 + struct.unpack_from("<i", piece, 4)[0] if self._begun else 0
        self._begun = True
        return piece[begin:].removesuffix(_ARROW_END)

    def end(self) -> bytes:
        return _ARROW_END if self._begun else b""


def _headed(names: str, line: bytes) -> dict[str, Callable[[], Joiner]]:
    """Return the joiners of the formats «…WithNames» and «…WithNamesAndTypes»."""
    found: dict[str, Callable[[], Joiner]] = {}
    for name in names.split():
        found[f"{name}withnames"] = lambda: Headed(line, 1)
        found[f"{name}withnamesandtypes"] = lambda: Headed(line, 2)
    return found


_JOINERS: dict[str, Callable[[], Joiner]] = {
    **dict.fromkeys(_FRAMELESS, Frameless),
    **_headed(_HEADED_LINES, _LINE),
    **_headed("csv", _CSV_LINE),
    "arrowstream": ArrowStream,
}


def joiner(name: str) -> Joiner | None:
    """Return what joins the pieces of an answer in this format; None if it cannot be streamed."""
    make = _JOINERS.get(name.lower())
    return make() if make else None


def content_type(name: str) -> str:
    """Return the content type that ClickHouse gives a format."""
    name = name.lower()
    if name in ("jsoneachrow", "jsonlines", "ndjson") or (name.startswith("json") and "eachrow" in name):
        return "application/x-ndjson; charset=UTF-8"
    if name.startswith("json"):
        return "application/json; charset=UTF-8"
    if name.startswith("csv"):
        return f"text/csv; charset=UTF-8; header={'present' if 'withnames' in name else 'absent'}"
    if name.startswith(("tabseparated", "tsv")):
        return "text/tab-separated-values; charset=UTF-8"
    if name.startswith(("native", "rowbinary", "arrow", "parquet", "orc", "avro", "msgpack")):
        return "application/octet-stream"
    return "text/plain; charset=UTF-8"
