"""How large an answer may be: what is beyond is cut, and the answer says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.validation import escape_for_terminal
from aaiclick.wording import counted

ANSWER_BYTES_MAX = 60_000
"""What an answer may take as JSON: some 15,000 to 20,000 tokens."""

TEXT_LENGTH_MAX = 4_000
"""Characters of one text in an answer: an error, a traceback, a query."""

CELL_LENGTH_MAX = 1_000
"""Characters of one value in a row of an Object."""

LOG_BYTES_MAX = 25_000
"""Bytes of a log in one answer. As JSON, each may take two."""

OPERATIONS_MAX = 200
"""Operations that a lineage is made of, in each direction."""

EDGES_MAX = 500
"""Edges between columns that a lineage tells."""

PAGE_MAX = 100
PAGE_DEFAULT = 20

READ_S_MAX = 20.0
"""Seconds that a tool which only reads may take."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How an answer of one kind gives way."""

    text_max: int = TEXT_LENGTH_MAX
    exact: bool = False
    """Characters that cannot be seen stay as they are; elsewhere they are written as escapes."""
    keeps: tuple[str, ...] = ()
    """Lists that are not cut: others would lose their meaning."""
    newest: bool = False
    """Lists lose their beginnings: what matters is at the end."""
    place: Callable[[dict[str, Any]], str] | None = None
    """Where the next page begins, by the last row that is left."""


TEXTS = Bounds()
LOG = Bounds(text_max=LOG_BYTES_MAX)
PAGE = Bounds(place=lambda row: str(row["id"]))
LETTERS = Bounds(place=lambda row: f"{row['job_id']}-{row['id']}")
TIMES = Bounds(place=lambda row: str(row["fire_at"]))
RUNS = Bounds(newest=True)
ROWS = Bounds(exact=True, keeps=("columns",))


def fitted(answer: dict[str, Any], bounds: Bounds, cut: list[str]) -> dict[str, Any]:
    """The answer, small enough: long texts lose their middle, then the longest lists their ends, then it is refused."""
    lengths: list[int] = []
    answer = shortened(answer if bounds.exact else visible(answer), bounds.text_max, lengths)
    if lengths:
        cut.append(
            f"The middle of {counted(len(lengths), 'text')} was left out; the longest has {max(lengths)} characters."
        )
    whole = {name: len(each) for name, each in answer.items() if isinstance(each, list)}
    while size_of(answer) > ANSWER_BYTES_MAX:
        there = [name for name in whole if name not in bounds.keeps and len(answer[name]) > 1]
        if not there:
            rule = f"the answer would take more than {ANSWER_BYTES_MAX} bytes"
            raise InputError(field="arguments", value="this", rule=rule, hint="Request fewer rows or columns.")
        longest = max(there, key=lambda name: size_of(answer[name]))
        left = len(answer[longest]) // 2
        answer[longest] = answer[longest][-left:] if bounds.newest else answer[longest][:left]
    for name, number in whole.items():
        if len(answer[name]) < number:
            cut.append(_left(answer, name, number, bounds))
    return answer


def _left(answer: dict[str, Any], name: str, number: int, bounds: Bounds) -> str:
    left = len(answer[name])
    if "complete" in answer:
        answer["complete"] = False
    if bounds.place is None:
        which = "last" if bounds.newest else "first"
        return f"{name}: these are the {which} {left} of {number}. Narrow the request to see others."
    answer["next"] = bounds.place(answer[name][-1])
    return f"{name}: these are the first {left} of {number} on the page. Its `next` continues after them."


def visible(value: Any) -> Any:
    """The same, with characters that hide something written as escapes; lines and tabs stay."""
    if isinstance(value, str):
        return "\n".join(
            "\t".join(escape_for_terminal(part) for part in line.removesuffix("\r").split("\t"))
            for line in value.split("\n")
        )
    if isinstance(value, dict):
        return {name: visible(each) for name, each in value.items()}
    return [visible(each) for each in value] if isinstance(value, list) else value


def shortened(value: Any, length_max: int, lengths: list[int]) -> Any:
    """The same, with texts of at most so many characters; `lengths` gets those of the texts that were longer.

    Both ends are kept: an error begins with what happened, and a traceback ends with it.
    """
    if isinstance(value, str) and len(value) > length_max:
        lengths.append(len(value))
        first = length_max // 3
        return f"{value[:first]}\n… {len(value) - length_max} characters left out …\n{value[first - length_max :]}"
    if isinstance(value, dict):
        return {name: shortened(each, length_max, lengths) for name, each in value.items()}
    if isinstance(value, list):
        return [shortened(each, length_max, lengths) for each in value]
    return value


def short_cell(value: Any, lengths: list[int]) -> Any:
    """A value of a row; of what is long, only the beginning of its JSON."""
    text = value if isinstance(value, str) else to_json(value)
    if len(text) <= CELL_LENGTH_MAX:
        return value
    lengths.append(len(text))
    return f"{text[:CELL_LENGTH_MAX]}… ({len(text) - CELL_LENGTH_MAX} characters left out)"


def to_json(value: Any) -> str:
    """On one line, with nothing escaped that need not be."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def size_of(value: Any) -> int:
    """The bytes that it takes as JSON."""
    return len(to_json(value).encode())
