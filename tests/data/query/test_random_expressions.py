"""Random queries, computed by ClickHouse and by plain Python: they must agree.

The model is of single rows: an expression is built from columns (of terms or of frames) and computed from a dict. None
is SQL's NULL: whatever is computed with it is None, but `False & None` is False and `True | None` is True; a choice
whose condition is None takes the second value; a condition that is None keeps no row.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aaiclick.data import Context, Frame, col, data_context

EXAMPLES = 2_000 if os.environ.get("TEST_LONG") else 35
"""Of each kind."""

pytestmark = pytest.mark.timeout(120 if EXAMPLES < 100 else 1200)

Row = dict[str, Any]
Column = Callable[[str], Any]
"""Gives a column by its name: a term or a frame."""


class Expr(NamedTuple):
    build: Callable[[Column], Any]
    value: Callable[[Row], Any]
    told: str

    def __repr__(self) -> str:
        return self.told


TYPES = {"k": "Int64", "i": "Int64", "n": "Nullable(Int64)", "s": "String", "t": "Bool", "u": "Nullable(Bool)"}
SMALL = st.integers(-9, 9)
WORDS = st.sampled_from(["", "a", "B", "ab", "it's", "`", "é"])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "i": SMALL,
            "n": st.none() | SMALL,
            "s": WORDS,
            "t": st.booleans(),
            "u": st.none() | st.booleans(),
        }
    ),
    max_size=8,
).map(lambda rows: [{"k": number, **row} for number, row in enumerate(rows)])


# ---------------------------------------------------------------- the model of None


def strict(compute: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: None if None in values else compute(*values)


def both(a: bool | None, b: bool | None) -> bool | None:
    return False if False in (a, b) else None if None in (a, b) else True


def either(a: bool | None, b: bool | None) -> bool | None:
    return True if True in (a, b) else None if None in (a, b) else False


# ---------------------------------------------------------------- expressions


def leaf(name: str) -> Expr:
    return Expr(lambda column: column(name), lambda row: row[name], name)


def constant(value: object) -> Expr:
    return Expr(lambda column: value, lambda row: value, repr(value))


def apply(told: str, build: Callable[..., Any], compute: Callable[..., Any], *parts: Expr) -> Expr:
    return Expr(
        lambda column: build(*(part.build(column) for part in parts)),
        lambda row: compute(*(part.value(row) for part in parts)),
        told.format(*parts),
    )


def operator(sign: str, build: Callable[..., Any], compute: Callable[..., Any] | None = None) -> Callable[..., Expr]:
    model = compute or strict(build)
    return lambda a, b: apply(f"({{0}} {sign} {{1}})", build, model, a, b)


ARITHMETIC = [
    operator("+", lambda a, b: a + b),
    operator("-", lambda a, b: a - b),
    operator("*", lambda a, b: a * b),
]
DIVISION = [operator("//", lambda a, b: a // b), operator("%", lambda a, b: a % b)]
COMPARISONS = [
    operator("<", lambda a, b: a < b),
    operator("<=", lambda a, b: a <= b),
    operator(">", lambda a, b: a > b),
    operator(">=", lambda a, b: a >= b),
    operator("==", lambda a, b: a == b),
    operator("!=", lambda a, b: a != b),
]
LOGIC = [
    operator("&", lambda a, b: a & b, both),
    operator("|", lambda a, b: a | b, either),
    operator("^", lambda a, b: a ^ b),
]


def choose(condition: Expr, yes: Expr, no: Expr) -> Expr:
    return apply(
        "choose({0}, {1}, {2})", lambda c, a, b: c.choose(a, b), lambda c, a, b: a if c else b, condition, yes, no
    )


def fill(value: Expr, default: Expr) -> Expr:
    return apply("fill({0}, {1})", lambda v, d: v.fill_null(d), lambda v, d: d if v is None else v, value, default)


def method(name: str, compute: Callable[..., Any], *constants: Any) -> Callable[[Expr], Expr]:
    return lambda part: apply(f"{{0}}.{name}{constants}", lambda v: getattr(v, name)(*constants), compute, part)


def isin(values: list[Any]) -> Callable[[Expr], Expr]:
    return method("isin", lambda v: (v in values if values else False) if v is not None or not values else None, values)


def inverted(part: Expr) -> Expr:
    return apply("~{0}", lambda v: ~v, strict(lambda v: not v), part)


@cache
def numbers(depth: int) -> st.SearchStrategy[Expr]:
    return st.deferred(lambda: _numbers(depth))


def _numbers(depth: int) -> st.SearchStrategy[Expr]:
    leaves = st.sampled_from([leaf("i"), leaf("n")])
    if depth == 0:
        return leaves
    inner = numbers(depth - 1)
    right = inner | SMALL.map(constant)
    divisor = SMALL.filter(bool).map(constant)
    return st.one_of(
        leaves,
        st.builds(lambda make, a, b: make(a, b), st.sampled_from(ARITHMETIC), inner, right),
        st.builds(lambda make, a, b: make(b, a), st.sampled_from(ARITHMETIC), inner, right),
        st.builds(lambda make, a, b: make(a, b), st.sampled_from(DIVISION), inner, divisor),
        st.builds(lambda a: apply("-{0}", lambda v: -v, strict(lambda v: -v), a), inner),
        st.builds(choose, truths(depth - 1), right, right),
        st.builds(fill, inner, SMALL.map(constant)),
        st.builds(method("length", strict(len)), texts(depth - 1)),
    )


@cache
def texts(depth: int) -> st.SearchStrategy[Expr]:
    return st.deferred(lambda: _texts(depth))


def _texts(depth: int) -> st.SearchStrategy[Expr]:
    if depth == 0:
        return st.just(leaf("s"))
    inner = texts(depth - 1)
    return st.one_of(
        inner,
        st.builds(method("upper", strict(str.upper)), inner),
        st.builds(lambda a, b: apply("{0}+{1}", lambda v, w: v.join_with(w), strict(str.__add__), a, b), inner, inner),
        st.builds(method("cast", strict(str), "Nullable(String)"), numbers(depth - 1)),
        st.builds(choose, truths(depth - 1), inner, WORDS.map(constant) | st.just(constant(None))),
    )


@cache
def truths(depth: int) -> st.SearchStrategy[Expr]:
    return st.deferred(lambda: _truths(depth))


def _truths(depth: int) -> st.SearchStrategy[Expr]:
    leaves = st.sampled_from([leaf("t"), leaf("u")])
    if depth == 0:
        return leaves
    inner = truths(depth - 1)
    return st.one_of(
        leaves,
        st.builds(
            lambda make, a, b: make(a, b),
            st.sampled_from(COMPARISONS),
            numbers(depth - 1),
            numbers(depth - 1) | SMALL.map(constant),
        ),
        st.builds(
            lambda make, a, b: make(a, b), st.sampled_from(COMPARISONS[4:]), texts(depth - 1), WORDS.map(constant)
        ),
        st.builds(lambda make, a, b: make(a, b), st.sampled_from(LOGIC), inner, inner | st.booleans().map(constant)),
        st.builds(inverted, inner),
        st.builds(choose, inner, inner, st.booleans().map(constant) | st.just(constant(None))),
        st.builds(fill, inner, st.booleans().map(constant)),
        st.builds(lambda values, a: isin(values)(a), st.lists(SMALL, max_size=3), numbers(depth - 1)),
        st.builds(method("is_null", lambda v: v is None), numbers(depth - 1)),
        st.builds(lambda w, a: method("startswith", strict(lambda v: v.startswith(w)), w)(a), WORDS, texts(depth - 1)),
    )


# ---------------------------------------------------------------- steps of a query


class Step(NamedTuple):
    build: Callable[[Frame], Frame]
    rows: Callable[[list[Row]], list[Row]]
    told: str

    def __repr__(self) -> str:
        return self.told


def of(frame: Frame, expr: Expr, as_frames: bool) -> Any:
    return expr.build(frame.__getitem__ if as_frames else col)


def where(condition: Expr, as_frames: bool) -> Step:
    return Step(
        lambda frame: frame.where(of(frame, condition, as_frames)),
        lambda rows: [row for row in rows if condition.value(row)],
        f"where({condition}, {as_frames})",
    )


def with_columns(new: dict[str, Expr], as_frames: bool) -> Step:
    return Step(
        lambda frame: frame.with_columns(**{name: of(frame, expr, as_frames) for name, expr in new.items()}),
        lambda rows: [{**row, **{name: expr.value(row) for name, expr in new.items()}} for row in rows],
        f"with_columns({new}, {as_frames})",
    )


def first_by(key: Expr, as_frames: bool, down: bool, limit: int, offset: int) -> Step:
    def rows_of(rows: list[Row]) -> list[Row]:
        known = [row for row in rows if key.value(row) is not None]
        known.sort(key=lambda row: row["k"])
        known.sort(key=lambda row: encoded(key.value(row)), reverse=down)
        unknown = sorted((row for row in rows if key.value(row) is None), key=lambda row: row["k"])
        return (known + unknown)[offset : offset + limit]

    return Step(
        lambda frame: frame.order_by(of(frame, key, as_frames), "k", descending=[down, False]).limit(limit, offset),
        rows_of,
        f"first_by({key}, {as_frames}, {down}, {limit}, {offset})",
    )


def encoded(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def swap(one: str, other: str) -> Step:
    names = {one: other, other: one}
    return Step(
        lambda frame: frame.rename(names),
        lambda rows: [{names.get(name, name): value for name, value in row.items()} for row in rows],
        f"swap({one}, {other})",
    )


STEPS = st.one_of(
    st.builds(where, truths(3), st.booleans()),
    st.builds(
        with_columns,
        st.fixed_dictionaries({}, optional={"i": numbers(3), "n": numbers(3), "t": truths(3), "s": texts(2)}).filter(
            bool
        ),
        st.booleans(),
    ),
    st.builds(first_by, numbers(2) | texts(2), st.booleans(), st.booleans(), st.integers(0, 9), st.integers(0, 3)),
    st.sampled_from([swap("i", "n"), swap("t", "u")]),
)


async def built(context: Context, rows: list[Row], steps: list[Step]) -> tuple[Frame, list[Row]]:
    given = {name: [row[name] for row in rows] for name in TYPES}
    frame: Frame = await context.create_object_from_value(given, fields=TYPES)
    for step in steps:
        frame, rows = step.build(frame), step.rows(rows)
    return frame, rows


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["k"])


random_queries = settings(
    max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@random_queries
@given(rows=ROWS, steps=st.lists(STEPS, max_size=4), made=st.booleans())
def test_a_query_gives_what_python_computes(ch_url: str, rows: list[Row], steps: list[Step], made: bool) -> None:
    async def check() -> None:
        async with data_context() as context:
            frame, expected = await built(context, rows, steps)
            found = await (await frame if made else frame).data(orient="records")
            assert in_order(found) == in_order(expected)

    asyncio.run(check())


@random_queries
@given(rows=ROWS, steps=st.lists(STEPS, max_size=2), key=texts(2) | truths(2) | numbers(2), value=numbers(2))
def test_groups_have_the_totals_that_python_computes(
    ch_url: str, rows: list[Row], steps: list[Step], key: Expr, value: Expr
) -> None:
    async def check() -> None:
        async with data_context() as context:
            frame, left = await built(context, rows, steps)
            number = value.build(col)
            totals = {"k": number.sum(), "low": number.min(), "high": number.max(), "kinds": number.nunique()}
            found = await frame.group_by(key.build(col)).agg(**totals, rows="count").data(orient="records")
            groups: dict[Any, list[Any]] = {}
            for row in left:
                groups.setdefault(key.value(row), []).append(value.value(row))
            assert {row.pop(next(iter(row))): row for row in found} == {
                name: totals_of(values) for name, values in groups.items()
            }

    asyncio.run(check())


def totals_of(values: list[int | None]) -> Row:
    known = [value for value in values if value is not None]
    return {
        "k": sum(known),
        "low": min(known, default=None),
        "high": max(known, default=None),
        "kinds": len(set(known)),
        "rows": len(values),
    }


@random_queries
@given(
    rows=ROWS,
    steps=st.lists(STEPS, max_size=2),
    others=st.lists(st.tuples(st.none() | SMALL, WORDS), max_size=5),
    how=st.sampled_from(["inner", "left", "semi", "anti"]),
    mine=st.sampled_from(["i", "n"]),
)
def test_joins_find_the_partners_that_python_finds(
    ch_url: str, rows: list[Row], steps: list[Step], others: list[tuple[int | None, str]], how: Any, mine: str
) -> None:
    async def check() -> None:
        async with data_context() as context:
            frame, left = await built(context, rows, steps)
            columns = {"j": [number for number, _ in others], "s": [word for _, word in others]}
            other = await context.create_object_from_value(columns, fields={"j": "Nullable(Int64)", "s": "String"})
            found = await frame.join(other, on={mine: "j"}, how=how).data(orient="records")
            expected = [joined for row in left for joined in partners(row, row[mine], others, how)]
            assert sorted(map(told, found)) == sorted(map(told, expected))

    asyncio.run(check())


def told(row: Row) -> str:
    return repr(sorted(row.items()))


def partners(row: Row, key: int | None, others: list[tuple[int | None, str]], how: str) -> list[Row]:
    words = [word for number, word in others if key is not None and number == key]
    if how in ("semi", "anti"):
        return [row] if bool(words) == (how == "semi") else []
    if not words and how == "left":
        return [{**row, "s_right": None}]
    return [{**row, "s_right": word} for word in words]
