"""Data goes to stdout, as a table or as JSON; everything else to stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def say(text: str) -> None:
    """What is not data. What was printed before comes out before, also where both go into one file."""
    with suppress(AttributeError, ValueError, OSError):  # no stdout, or a closed one: that is told where it is written
        sys.stdout.flush()
    if sys.stderr is not None:  # else it would go to stdout, among the data
        print(text, file=sys.stderr)  # noqa: T201


def show_text(text: str) -> None:
    """One piece of data as it is."""
    print(text)  # noqa: T201


def show_json(data: object) -> None:
    """One line for programs; for people indented, and without characters that could steer their terminal."""
    if not is_terminal():
        show_text(json.dumps(data, ensure_ascii=not _writes_unicode()))
        return
    text = json.dumps(data, indent=2, ensure_ascii=not _writes_unicode())
    show_text("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))


def show_facts(facts: Mapping[str, Any]) -> None:
    """One thing: a line for each fact."""
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        show_text(f"{name:<{width}}  {cell(value)}".rstrip())


def show_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Many things: a table on a terminal; off it, lines with tabs, which nothing cuts or wraps."""
    if is_terminal():
        _show_rich_table(columns, rows)
        return
    for row in (columns, *rows):
        show_text("\t".join(map(cell, row)))


def _show_rich_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    # imported only where a person looks at a table
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="" if os.environ.get("NO_COLOR") else "bold")
    for column in columns:
        table.add_column(Text(cell(column)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell(value)) for value in row))  # as text: a name may look like markup
    Console().print(table)


def is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def _writes_unicode() -> bool:
    return (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"


def cell(value: Any) -> str:
    """A value in a line of its own: nothing for None, no control characters."""
    return "" if value is None else printable(str(value))


def printable(text: str) -> str:
    """Line ends, tabs and control codes as their escapes: a name must not steer the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def harmless(text: str) -> str:
    """Text for a terminal: lines and tabs stay, all other control codes are escaped."""
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.replace("\r\n", "\n").split("\n"))
