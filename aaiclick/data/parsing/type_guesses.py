"""Guesses the types of columns of texts. A column gets a type only if every one of its texts is plainly of that type.

Ambiguous texts stay texts: 2024-02-30, 25:00:00, 007, 1e3, numbers with more digits than the type holds, and times with
an offset beside times without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from aaiclick.data.parsing.file_options import Options
from aaiclick.data.parsing.text_values import OFFSET, TextReading, reading
from aaiclick.data.sql import quoting
from aaiclick.data.typing.grammar import parse

if TYPE_CHECKING:
    from aaiclick.data.clients.contract import DataClient

TIMES = ("Date32", "DateTime64(6)", "DateTime64(9)", "DateTime64(6, 'UTC')", "DateTime64(9, 'UTC')")
NUMBERS = ("Int64", "UInt64", "Float64")
EVERYTHING = ("Bool", *NUMBERS, *TIMES)
TEXT = "String"

SAMPLE_ROWS = 1_000
"""The first rows narrow down the candidate types; then all rows are checked, against the remaining types alone."""

ASKED_AT_ONCE = 200
FLOAT_DIGITS, WHOLE_DIGITS = 17, 15
"""The digits that a float keeps: of a fraction that a program has written, and of any whole number."""

_WHOLE = "^(0|-?[1-9][0-9]*)$"
_FRACTION = "^-?((0|[1-9][0-9]*)([.][0-9]+)?([eE][+-][0-9]+)?|(0|[1-9][0-9]*)[.][0-9]+[eE][0-9]+|[.][0-9]+)$"
_NO_NUMBER = "^(-?inf|nan|NaN)$"


class Text(NamedTuple):
    """A column of texts: its name, SQL of the text, SQL that tells whether it is NULL (`null_text` if the column stays
    a text), and its candidate types."""

    name: str
    text: str
    null: str
    null_text: str
    kinds: Sequence[str]
    is_number: bool = False
    """The texts are numbers as JSON writes them."""


class Guess(NamedTuple):
    """A column, and the SQL expression that reads it as its guessed type."""

    name: str
    value: str


async def guess(client: DataClient, table: str, texts: Sequence[Text]) -> list[Guess]:
    """Return how each column is read: as the first candidate type that all its texts fit, else as a text."""
    left = {each.name: list(each.kinds) for each in texts}
    count = (await client.rows(f"SELECT count() FROM {quoting.name(table)} WHERE row > 0")).columns[0][0]  # noqa: S608 (quoted)
    if count > SAMPLE_ROWS:
        few = [(each, kind, False) for each in texts for kind in each.kinds]
        for each, kind in await _wrong(client, table, f"row BETWEEN 1 AND {SAMPLE_ROWS}", few):
            left[each.name].remove(kind)
    asked = [(each, left[each.name][0], True) for each in texts if left[each.name]]
    while asked:
        wrong = await _wrong(client, table, "row > 0", asked)
        for each, kind in wrong:
            left[each.name].remove(kind)
        asked = [(each, left[each.name][0], True) for each, _ in wrong if left[each.name]]
    return [_guessed(each, left[each.name]) for each in texts]


async def _wrong(
    client: DataClient, table: str, where: str, asked: Sequence[tuple[Text, str, bool]]
) -> list[tuple[Text, str]]:
    """Return the pairs of column and type that do not fit in these rows.

    The last element of an asked pair says whether a column of nothing but NULL counts as not fitting.
    """
    found = []
    for start in range(0, len(asked), ASKED_AT_ONCE):
        part = asked[start : start + ASKED_AT_ONCE]
        told = ", ".join(_is_right(*each) for each in part)
        answer = await client.rows(f"SELECT {told} FROM {quoting.name(table)} AS s WHERE {where}")  # noqa: S608 (quoted)
        found += [each[:2] for each, (is_right,) in zip(part, answer.columns, strict=True) if not is_right]
    return found


def _is_right(each: Text, kind: str, some: bool) -> str:
    """Return SQL: whether all texts of a column are of a type and, with `some`, whether one of them is not NULL."""
    right = f"countIf(NOT ({_fits(each, kind)})) = 0"
    return f"{right} AND countIf(NOT {each.null}) > 0" if some else right


def _fits(each: Text, kind: str) -> str:
    found = _reading(each, kind)
    text = f"trimBoth({each.text})"
    plain = {
        "Bool": f"{text} IN ('true', 'false')",
        "Int64": _match(text, _WHOLE),
        "UInt64": _match(text, _WHOLE),
        "Float64": _is_float(text, each.is_number),
    }.get(kind, "1")
    if kind.endswith("'UTC')") and len(each.kinds) > 1:  # a single candidate is what the file itself says
        plain = _match(text, f"{OFFSET}$")
    return f"{each.null} OR ({plain} AND {found.fits})"


def _is_float(text: str, is_number: bool) -> str:
    """Return SQL: whether a text is a number that a float holds without losing digits."""
    mantissa = f"replaceRegexpAll(replaceRegexpOne({text}, '[eE].*$', ''), '[^0-9]', '')"
    digits = f"length(replaceRegexpOne({mantissa}, '^0+', ''))"
    lost = f"(toFloat64OrZero({text}) = 0 AND {digits} > 0)"  # 1e-400
    if is_number:
        return f"((NOT {_match(text, _WHOLE)} OR {digits} <= {WHOLE_DIGITS}) AND NOT {lost})"
    few = f"{digits} <= if({_match(text, _WHOLE)}, {WHOLE_DIGITS}, {FLOAT_DIGITS})"
    return f"(({_match(text, _FRACTION)} AND {few} AND NOT {lost}) OR {_match(text, _NO_NUMBER)})"


def _match(text: str, pattern: str) -> str:
    return f"match({text}, {quoting.text(pattern)})"


def _reading(each: Text, kind: str) -> TextReading:
    found = reading(parse(kind), each.text, Options())
    assert found is not None, "all these are read from texts"
    return found


def _guessed(each: Text, left: Sequence[str]) -> Guess:
    kind = left[0] if left else TEXT
    null = each.null if left else each.null_text
    return Guess(each.name, f"if({null}, NULL, {_reading(each, kind).value})")
