"""Render rows as plain text, as a GitHub table and as HTML.

Values are escaped: none of them acts as markup or as a control sequence of a terminal.
"""

from __future__ import annotations

import html as markup
import reprlib
import unicodedata
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from aaiclick.urls import shown
from aaiclick.wording import written

CELL_MAX = 60
"""The longest cell that is shown, in characters; a longer one is cut and ends with an ellipsis."""

Columns = Sequence[Sequence[Any]]

_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]|~"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"})
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


def glimpse(value: object) -> str:
    """Return a value for an error message: short and on one line; it never fails, even if `repr` does."""
    try:
        told = written(value) or reprlib.repr(value)
    except Exception:  # an integer beyond Python's limit of digits, or a __repr__ that raises
        told = f"<{type(value).__name__}>"
    return shown(told)


def markdown(names: Sequence[str], columns: Columns, limit_note: str = "") -> str:
    """Return a GitHub table; columns of numbers are aligned to the right."""
    head = [_plain(name).translate(_MARKDOWN) for name in names]
    body = [[_cell(value).translate(_MARKDOWN) for value in column] for column in columns]
    rule = ["---:" if _is_numeric(column) else "---" for column in columns]
    lines = [head, rule, *map(list, zip(*body, strict=True))]
    note = [f"\n{_plain(limit_note).translate(_MARKDOWN)}"] if limit_note else []
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), *note])


def html(names: Sequence[str], columns: Columns, note: str = "") -> str:
    """Return an HTML table, for notebooks."""
    sides = [' style="text-align: right"' if _is_numeric(column) else "" for column in columns]
    head = "".join(f"<th{side}>{markup.escape(_plain(name))}</th>" for name, side in zip(names, sides, strict=True))
    rows = []
    for row in zip(*columns, strict=True):
        cells = (f"<td{side}>{markup.escape(_cell(value))}</td>" for value, side in zip(row, sides, strict=True))
        rows.append(f"<tr>{''.join(cells)}</tr>")
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return table + (f"<p>{markup.escape(_plain(note))}</p>" if note else "")


def text(names: Sequence[str], columns: Columns, note: str = "") -> str:
    """Return aligned plain text, for a terminal."""
    written = [[_plain(name), *map(_cell, column)] for name, column in zip(names, columns, strict=True)]
    aligned = [_aligned(cells, _is_numeric(column)) for cells, column in zip(written, columns, strict=True)]
    lines = ["  ".join(row).rstrip() for row in zip(*aligned, strict=True)]
    return "\n".join([*lines, *([_plain(note)] if note else [])])


def _aligned(cells: list[str], to_the_right: bool) -> list[str]:
    widths = [_width(cell) for cell in cells]
    blanks = [" " * (max(widths) - width) for width in widths]
    put: Callable[[str, str], str] = (
        (lambda cell, blank: blank + cell) if to_the_right else (lambda cell, blank: cell + blank)
    )
    return [put(cell, blank) for cell, blank in zip(cells, blanks, strict=True)]


def _width(cell: str) -> int:
    """Return how many columns a terminal needs: East Asian characters and emoji take two, combining accents none."""
    if cell.isascii():
        return len(cell)
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in cell
    )


def _is_numeric(column: Sequence[Any]) -> bool:
    kinds = {type(value) for value in column} - {type(None)}
    return bool(kinds) and all(issubclass(kind, int | float | Decimal) and kind is not bool for kind in kinds)


def _cell(value: Any) -> str:
    return _short(_plain(_written(value)))


def _written(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return value[: CELL_MAX + 1]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return repr(value[: CELL_MAX + 1])
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return _joined("[", value, "]", _written)
    if isinstance(value, dict):
        return _joined("{", value.items(), "}", lambda pair: f"{_written(pair[0])}: {_written(pair[1])}")
    return str(value)


def _joined(begin: str, values: Any, end: str, write: Callable[[Any], str]) -> str:
    """Join values until the cell is full; the closing bracket is left out with the values that do not fit."""
    parts: list[str] = []
    for value in values:
        parts.append(write(value))
        if len(parts) > CELL_MAX // 2:
            return begin + ", ".join(parts)
    return begin + ", ".join(parts) + end


def _plain(text: str) -> str:
    """Return the text on one line, with unprintable characters escaped."""
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() else _SHORT_ESCAPES.get(sign) or sign.encode("unicode_escape").decode("ascii")
        for sign in text
    )


def _short(text: str) -> str:
    return text if len(text) <= CELL_MAX else f"{text[: CELL_MAX - 1]}…"
