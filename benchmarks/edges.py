"""Operations on edge values, and what plain Python says of each; nothing here belongs to one of the query layers.

A case is asked of a layer for all of its rows at once; where that is refused, for each row alone. A layer is right
where its answer equals Python's, or where both refuse; what one may think of as a matter of taste (`/` by zero is
infinity, the square root of -1 is NaN) counts as wrong here, since Python refuses it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

Row = tuple[Any, ...]
Build = Callable[[Any], Any]
"""From the columns `a`, `b` … of a layer (`t` is the table itself, `other` a second one) to its expression."""


class Case(NamedTuple):
    """One operation, on a table of a few rows."""

    group: str
    name: str
    types: Sequence[str]
    rows: Sequence[Row]
    python: Callable[..., Any]
    """From a row's values to the answer; with `whole`, from the lists of the columns to the answer of all rows."""
    build: Build
    peer: Build | None = None
    """The same for Ibis, where its words are others."""
    whole: bool = False
    fill: str = ""
    """A query that gives the rows, where they are many."""
    other: Sequence[Row] = ()
    """The rows of a second table with the same columns."""

    @property
    def key(self) -> str:
        return f"{self.group}: {self.name} of {', '.join(self.types)}"


class Refusal(NamedTuple):
    """No answer, and why."""

    why: str


class Verdict(NamedTuple):
    key: str
    row: str
    verdict: str
    """right, refused or wrong"""
    expected: str
    found: str


def expected_of(case: Case, row: Row | None) -> Any:
    """What Python says: of a row, or of all of them."""
    try:
        if row is not None:
            return case.python(*row)
        if case.other:
            return case.python(case.rows, case.other)
        return case.python(*(list(column) for column in zip(*case.rows, strict=True))) if case.rows else case.python([])
    except (ArithmeticError, TypeError, ValueError) as error:
        return Refusal(type(error).__name__)


def judge(case: Case, row: Row | None, found: Any) -> Verdict:
    """Whether an answer is Python's."""
    expected = expected_of(case, row)
    if isinstance(found, Refusal):
        verdict = "right" if isinstance(expected, Refusal) else "refused"
    else:
        verdict = "right" if not isinstance(expected, Refusal) and is_same(expected, found) else "wrong"
    return Verdict(case.key, _told(row) if row is not None else "all rows", verdict, _told(expected), _told(found))


def _told(value: Any) -> str:
    if isinstance(value, Refusal):
        return f"refused: {' '.join(value.why.split())}"[:160]
    return repr(value)[:80]


def is_same(expected: Any, found: Any) -> bool:
    """Equal, to the last digit but for the last bits of floats, and as true, as negative and as absent."""
    if isinstance(expected, list | tuple):
        return isinstance(found, list | tuple) and len(expected) == len(found) and all(map(is_same, expected, found))
    if expected is None or found is None:
        return expected is None and found is None
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    if isinstance(expected, float) and isinstance(found, int | float | Decimal):
        return _is_same_float(expected, float(found))
    if isinstance(expected, Decimal) and isinstance(found, float):
        return math.isclose(expected, found, rel_tol=1e-15)
    if isinstance(expected, Decimal) and isinstance(found, Decimal) and expected.is_finite():
        return expected == found or (_is_long(expected) and math.isclose(expected, found, rel_tol=1e-15))
    if isinstance(expected, datetime):
        return _is_same_moment(expected, found)
    return bool(expected == found)


def _is_long(value: Decimal) -> bool:
    """Whether Python itself has cut the digits, as of a third."""
    return len(value.as_tuple().digits) >= 28


def _is_same_float(expected: float, found: float) -> bool:
    if math.isnan(expected) or math.isnan(found):
        return math.isnan(expected) and math.isnan(found)
    if expected == 0 == found:
        return math.copysign(1, expected) == math.copysign(1, found)
    return math.isclose(expected, found, rel_tol=4e-16)


def _is_same_moment(expected: datetime, found: Any) -> bool:
    if isinstance(found, datetime):
        return expected == (found if found.tzinfo else found.replace(tzinfo=UTC))
    return isinstance(found, date) and expected.date() == found and expected.time() == datetime.min.time()


def judged(case: Case, found: Sequence[Any]) -> list[Verdict]:
    """The verdicts of a case, from its answers: one for each row, or one for all."""
    if case.whole:
        return [judge(case, None, found[0])]
    return [judge(case, row, value) for row, value in zip(case.rows, found, strict=True)]
