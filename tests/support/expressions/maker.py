"""Random expressions over columns of all types, and what plain Python computes for them: the columns, and the maker.

An expression is made together with its answers for the rows of one table. What Python's exact answer cannot be in the
type that the expression has is to be refused: such expressions are kept apart, since they refuse the whole query.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from random import Random
from typing import Any

from aaiclick.data.query.column_terms import Term, lit
from aaiclick.data.query.expressions import Column
from aaiclick.data.typing.expression_types import Kind
from aaiclick.data.typing.grammar import Type, parse

Values = tuple[Any, ...]
EITHER, REFUSED = "either", object()
"""Whether it is refused is not foretold; it is to be."""

BITS = (8, 16, 32, 64, 128, 256)
DECIMALS = ((9, 0), (9, 2), (9, 9), (18, 4), (18, 18), (38, 10), (38, 0), (38, 30), (76, 0), (76, 20), (76, 60))
FLOATS = [0.0, -0.0, 1.0, -1.5, 0.1, 2.5, -2.5, 1e300, -1e-300, 5e-324, 2.0**53, 2.0**63, math.inf, -math.inf, math.nan]
SINGLES = [0.0, -0.0, 1.0, -1.5, 2.5, 2.0**24, 2.0**63, math.inf, -math.inf, math.nan]
TEXTS = ["", "a", "B", "ab", " a b ", "it's", "`", "\\", "é", "Ωmega", "日本", "🙂x", "\t1", "%_", "aXbX"]
DAYS = [date(1970, 1, 1), date(2024, 2, 29), date(2000, 12, 31), date(2149, 6, 6), date(1999, 1, 4), date(2024, 3, 31)]
OLD_DAYS = [*DAYS, date(1900, 1, 1), date(1969, 12, 31), date(2299, 12, 31)]
MOMENTS = [
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2024, 2, 29, 23, 59, 59, 999000, tzinfo=UTC),
    datetime(2024, 3, 31, 0, 59, 59, tzinfo=UTC),
    datetime(2024, 3, 31, 1, 0, tzinfo=UTC),
    datetime(2024, 10, 27, 0, 30, tzinfo=UTC),
    datetime(2024, 10, 27, 1, 30, tzinfo=UTC),
    datetime(2024, 11, 3, 5, 30, tzinfo=UTC),
    datetime(1999, 12, 31, 23, 30, 0, 1000, tzinfo=UTC),
]


def _whole(bits: int, signed: bool) -> list[Any]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    found = {low, low + 1, high, high - 1, high // 2, 0, 1, 2, 3, 7, 10, 100, -1, -2, -3, -7, -100, 2**53 + 1, 2**62}
    return sorted(value for value in found if low <= value <= high)


def _decimals(digits: int, scale: int) -> list[Any]:
    with localcontext(prec=80):
        unit = Decimal(1).scaleb(-scale)
        most = Decimal(10**digits - 1).scaleb(-scale)
        found = [Decimal(0), unit, -unit, most, -most, *(unit * n for n in (2, 7, -7, 10, 150, 725, -750))]
        return [each for each in found if abs(each) <= most]


COLUMNS: dict[str, list[Any]] = {
    **{f"{'' if signed else 'U'}Int{bits}": _whole(bits, signed) for bits in BITS for signed in (True, False)},
    **{f"Decimal({digits}, {scale})": _decimals(digits, scale) for digits, scale in DECIMALS},
    "Float64": FLOATS,
    "Float32": SINGLES,
    "Bool": [True, False],
    "String": TEXTS,
    "LowCardinality(String)": TEXTS,
    "Date": DAYS,
    "Date32": OLD_DAYS,
    "DateTime64(6, 'UTC')": MOMENTS,
    "DateTime64(3, 'Europe/Rome')": MOMENTS,
    "DateTime('America/New_York')": [each.replace(microsecond=0) for each in MOMENTS],
}
NULLABLE = {kind: str(parse(f"Nullable({kind})")) for kind in COLUMNS if not kind.startswith("Low")}
KINDS = {f"c{number}": kind for number, kind in enumerate([*COLUMNS, *NULLABLE.values()])}
"""The columns of a table."""


def random_rows(chance: Random, count: int) -> dict[str, list[Any]]:
    """The values of a table, in Python's types."""
    found = {}
    for name, kind in KINDS.items():
        bare = kind.removeprefix("Nullable(").removesuffix(")") if kind not in COLUMNS else kind
        pool = COLUMNS[bare]
        none = kind not in COLUMNS
        found[name] = [None if none and chance.random() < 0.25 else _drawn(chance, bare, pool) for _ in range(count)]
    return found


def _drawn(chance: Random, kind: str, pool: list[Any]) -> Any:
    if "Int" in kind and chance.random() < 0.4:
        value = chance.randint(-120, 120)
        return abs(value) if kind.startswith("U") else value
    return chance.choice(pool)


@dataclass(slots=True)
class Node:
    """An expression, its answers, and how it is told."""

    term: Term
    values: Values
    told: str
    is_constant: bool = False

    @property
    def kind(self) -> Kind:
        return self.term.expression.kind


SORTS: dict[str, Callable[[Maker, int], Node]] = {}
"""What makes expressions of numbers, texts …"""

OFTEN = ["whole"] * 5 + ["decimal"] * 3 + ["float"] * 2 + ["truth"] * 4 + ["text"] * 2 + ["time"] * 2


class Apart(Exception):
    """What was made cannot be a part of others."""


@dataclass
class Maker:
    """Makes expressions over one table."""

    chance: Random
    columns: dict[str, Column]
    rows: dict[str, list[Any]]
    refused: list[Node] = field(default_factory=list)
    """What is to be refused."""
    open: list[Node] = field(default_factory=list)
    """What may be refused."""

    def make(self) -> Node:
        """An expression that is more than a column or a constant."""
        while True:
            found = self.of(self.chance.choice(OFTEN), self.chance.randint(1, 3))
            if not (found.is_constant or found.told in KINDS):
                return found

    def of(self, sort: str, depth: int) -> Node:
        """An expression of one sort, so deep; a column, where what came out is to be refused."""
        try:
            return SORTS[sort](self, max(depth, 0))
        except Apart:
            return SORTS[sort](self, 0)

    # ------------------------------------------------------------ leaves

    def column(self, fits: Callable[[Type], bool]) -> Node:
        names = [name for name, column in self.columns.items() if column.kind and fits(column.kind.bare)]
        name = self.chance.choice(names)
        return Node(Term(self.columns[name]), tuple(self.rows[name]), name)

    def constant(self, pool: Sequence[Any]) -> Node:
        value = self.chance.choice(pool)
        return Node(lit(value), (value,) * len(self.rows["c0"]), repr(value), is_constant=True)

    # ------------------------------------------------------------ operations

    def apply(
        self, told: str, build: Callable[..., Any], model: Callable[..., Any], *parts: Node, strict: bool = True
    ) -> Node:
        """An operation; what is refused, or may be, is put apart."""
        if all(part.is_constant for part in parts):
            raise Apart
        term = build(*(part.term for part in parts))
        kinds = [part.kind for part in parts]
        values, either = [], False
        for row in zip(*(part.values for part in parts), strict=True):
            value = (
                _answer(told, row)
                if strict and any(each is None for each in row)
                else model(term.expression.kind, kinds, *row)
            )
            value = in_range(value, term.expression.kind)
            if isinstance(value, tuple):
                value, either = value[1], True
            values.append(value)
        node = Node(term, tuple(values), told.format(*(part.told for part in parts)))
        if any(value is REFUSED for value in values):
            self.refused.append(node)
            raise Apart
        if either:
            self.open.append(node)
            raise Apart
        return node


def _answer(told: str, row: Values) -> Any:
    """What is computed with None is None; by 0 it may be refused all the same."""
    return (EITHER, None) if row[-1] == 0 and ("//" in told or "%" in told) else None


def in_range(value: Any, kind: Kind) -> Any:
    """The value, or that it is refused: it is not in its type. Near the limits of the widest that is not foretold."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or kind is None:
        return value
    bare = kind.bare
    if bare.name == "Decimal":
        digits, scale = bare.numbers
        limit = Fraction(10) ** (digits - scale)
        if digits == 76 and abs(Fraction(value)) * 4 >= limit:
            return (EITHER, value) if abs(Fraction(value)) < limit else REFUSED
        if abs(Fraction(value)) >= limit:
            return (EITHER, value) if digits < 38 else REFUSED
        return value
    if bare.name.startswith(("Int", "UInt")) and isinstance(value, int):
        low, high = (-(2 ** (bare.bits - 1)), 2 ** (bare.bits - 1)) if bare.name[0] == "I" else (0, 2**bare.bits)
        if bare.bits == 256 and (value * 2 >= high or (low and value <= low // 2)) and low <= value < high:
            return (EITHER, value)
        return value if low <= value < high else REFUSED
    return value
