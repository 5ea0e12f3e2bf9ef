"""Edge cases of nothing, texts, times, totals, joins and windows."""

from __future__ import annotations

import operator
import statistics
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from benchmarks.edges import Build, Case, Row

BERLIN = ZoneInfo("Europe/Berlin")
MANY = 100_000


def other_cases() -> Iterator[Case]:
    yield from _nothing()
    yield from _texts()
    yield from _days()
    yield from _moments()
    yield from _totals()
    yield from _totals_of_many()
    yield from _joins()
    yield from _windows()


def _nothing() -> Iterator[Case]:
    """What is computed with nothing is nothing, but where one side settles it."""
    group, numbers, truths = "nothing", ("Nullable(Int64)", "Nullable(Int64)"), ("Nullable(Bool)", "Nullable(Bool)")
    rows: list[Row] = [(1, None), (None, None), (2, 2)]
    for name, function in (("+", operator.add), ("//", operator.floordiv), ("==", operator.eq), ("<", operator.lt)):
        yield Case(group, name, numbers, rows, _or_none(function), lambda r, f=function: f(r.a, r.b))
    three: list[Row] = [(x, y) for x in (True, False, None) for y in (True, False, None)]
    yield Case(group, "&", truths, three, _and, lambda r: r.a & r.b)
    yield Case(group, "|", truths, three, _either, lambda r: r.a | r.b)
    yield Case(group, "~", truths[:1], [(True,), (None,)], _or_none(operator.not_), lambda r: ~r.a)
    rows = [(None,), (1,)]
    isnull: Build = lambda r: r.a.isnull()  # noqa: E731
    yield Case(group, "is null", numbers[:1], rows, lambda a: a is None, lambda r: r.a.is_null(), isnull)
    yield Case(group, "fill", numbers[:1], rows, lambda a: 0 if a is None else a, lambda r: r.a.fill_null(0))
    rows = [(None,), (1,), (3,)]
    yield Case(group, "isin", numbers[:1], rows, _or_none(lambda a: a in (1, 2)), lambda r: r.a.isin([1, 2]))
    yield Case(group, "isin nothing", ("Int64",), [(1,)], lambda a: False, lambda r: r.a.isin([]))
    rows = [(None, 1), (2, None), (None, None)]
    build: Build = lambda r: r.a.coalesce(r.b)  # noqa: E731
    yield Case(group, "coalesce", numbers, rows, lambda a, b: b if a is None else a, build)


def _or_none(function: Any) -> Any:
    return lambda *given: None if None in given else function(*given)


def _and(a: bool | None, b: bool | None) -> bool | None:
    return False if a is False or b is False else None if a is None or b is None else True


def _either(a: bool | None, b: bool | None) -> bool | None:
    return True if a or b else None if a is None or b is None else False


def _texts() -> Iterator[Case]:
    group, text = "texts", ("String",)
    words: list[Row] = [("été",), ("abcdef",), ("a",), ("",), ("👍🏽é",)]
    yield Case(group, "upper", text, [*words, ("straße",)], str.upper, lambda r: r.a.upper())
    yield Case(group, "lower", text, [("ÉTÉ",), ("İ",), ("ΑΣ",)], str.lower, lambda r: r.a.lower())
    yield Case(group, "length", text, words, len, lambda r: r.a.length())
    padded: list[Row] = [("  x ",), ("\tx\n",), ("\u00a0x",), ("",)]
    yield Case(group, "strip", text, padded, str.strip, lambda r: r.a.strip())
    yield Case(group, "[1:3]", text, words, lambda a: a[1:3], lambda r: r.a.slice(1, 2), lambda r: r.a[1:3])
    yield Case(group, "[-2:]", text, words, lambda a: a[-2:], lambda r: r.a.slice(-2, 2), lambda r: r.a[-2:])
    yield Case(group, "[:-1]", text, words, lambda a: a[:-1], lambda r: r.a.slice(0, -1), lambda r: r.a[:-1])
    yield Case(group, "[-1]", text, words[:2], lambda a: a[-1], lambda r: r.a.slice(-1, 1), lambda r: r.a[-1])
    yield Case(group, "contains ''", text, words, lambda a: "" in a, lambda r: r.a.contains(""))
    yield Case(group, "contains %", text, [("a%b",), ("ab",)], lambda a: "%" in a, lambda r: r.a.contains("%"))
    yield Case(group, "startswith", text, words, lambda a: a.startswith("é"), lambda r: r.a.startswith("é"))
    replaced: Build = lambda r: r.a.replace("a", "b")  # noqa: E731
    yield Case(group, "replace", text, [("aaa",), ("",)], lambda a: a.replace("a", "b"), replaced)
    yield Case(group, "replace ''", text, [("ab",)], lambda a: a.replace("", "-"), lambda r: r.a.replace("", "-"))
    yield Case(group, "split", text, [("a,b,,c",), ("",)], lambda a: a.split(","), lambda r: r.a.split(","))
    yield Case(group, "+", ("String", "String"), [("a", "b"), ("", "é")], operator.add, lambda r: r.a + r.b)
    pairs: list[Row] = [("Z", "a"), ("é", "z"), ("", "a"), ("a", "a\0")]
    yield Case(group, "<", ("String", "String"), pairs, operator.lt, lambda r: r.a < r.b)
    yield Case(group, "+ 1", text, [("1",)], lambda a: a + 1, lambda r: r.a + 1)
    yield Case(group, "== 1", text, [("1",), ("x",)], lambda a: a == 1, lambda r: r.a == 1)


def _days() -> Iterator[Case]:
    group, day = "days", ("Date32",)
    days: list[Row] = [(date(1960, 5, 5),), (date(1970, 1, 1),), (date(2024, 2, 29),), (date(2200, 12, 31),)]
    old = date(1965, 1, 1)
    yield Case(group, "year", day, days, lambda a: a.year, lambda r: r.a.year())
    yield Case(group, "weekday", day, days, date.weekday, lambda r: r.a.weekday(), lambda r: r.a.day_of_week.index())
    yield Case(group, "> 1965", day, days, lambda a: a > old, lambda r: r.a > old)
    yield Case(group, "== 2200", day, days, lambda a: a == date(2200, 12, 31), lambda r: r.a == date(2200, 12, 31))
    month: Build = lambda r: r.a.truncate("M")  # noqa: E731
    yield Case(group, "month's start", day, days, lambda a: a.replace(day=1), lambda r: r.a.start_of("month"), month)
    after = timedelta(days=1)
    yield Case(group, "+ 1 day", day, days, lambda a: a + after, lambda r: r.a + after)
    texts: list[Row] = [("2024-02-29",), ("2024-02-30",), ("x",), ("1960-05-05",), ("2024-1-5",), ("",)]
    ours, theirs = (lambda r: r.a.cast("Date32")), (lambda r: r.a.cast("date"))
    yield Case(group, "cast of text", ("String",), texts, date.fromisoformat, ours, theirs)


def _moments() -> Iterator[Case]:
    group = "moments"
    moments = [_utc(2024, 3, 31, 0, 30), _utc(2024, 10, 27, 0, 30), _utc(2024, 10, 27, 1, 30)]
    moments += [_utc(1969, 12, 31, 23, 59, 59, 500_000), _utc(1901, 1, 1, 12), _utc(2298, 12, 31, 12)]
    literal, old = datetime(2024, 3, 31, 2, 30, tzinfo=BERLIN), datetime(1960, 1, 1, tzinfo=UTC)
    naive = _utc(2024, 1, 1).replace(tzinfo=None)
    form, after = "%Y-%m-%d %H:%M:%S", timedelta(hours=1)
    for zone in (UTC, BERLIN):
        kind = (f"DateTime64(6, '{'UTC' if zone is UTC else 'Europe/Berlin'}')",)
        rows: list[Row] = [(moment.astimezone(zone),) for moment in moments]
        yield Case(group, "hour", kind, rows, lambda a: a.hour, lambda r: r.a.hour())
        yield Case(group, "year", kind, rows, lambda a: a.year, lambda r: r.a.year())
        yield Case(group, "date", kind, rows, datetime.date, lambda r: r.a.date())
        yield Case(group, "> other zone", kind, rows, lambda a: a > literal, lambda r: r.a > literal)
        yield Case(group, "> 1960", kind, rows, lambda a: a > old, lambda r: r.a > old)
        exact = moments[3]
        yield Case(group, "== exactly", kind, rows, lambda a, e=exact: a == e, lambda r, e=exact: r.a == e)
        yield Case(group, "> naive", kind, rows[:1], lambda a: a > naive, lambda r: r.a > naive)
        yield Case(group, "strftime", kind, rows, lambda a: a.strftime(form), lambda r: r.a.strftime(form))
        month: Build = lambda r: r.a.truncate("M")  # noqa: E731
        yield Case(group, "month's start", kind, rows, _month, lambda r: r.a.start_of("month"), month)
        python = lambda a: a.astimezone(UTC) + after  # noqa: E731
        yield Case(group, "+ 1 hour", kind, rows, python, lambda r: r.a + after)
    texts: list[Row] = [("2024-01-01 25:00:00",), ("2024-01-01 05:00:00",), ("x",), ("2024-02-30 00:00:00",)]
    texts += [("1960-01-01 00:00:00",), ("2024-01-01 05:00:00.123456",)]
    ours, theirs = (lambda r: r.a.cast("DateTime64(6, 'UTC')")), (lambda r: r.a.cast("timestamp('UTC', 6)"))
    yield Case(group, "cast of text", ("String",), texts, _moment, ours, theirs)


def _utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def _month(moment: datetime) -> datetime:
    return moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0, fold=0)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _total(name: str, kind: str, values: list[Any], python: Any, build: Build, peer: Build | None = None) -> Case:
    return Case("totals", name, (kind,), [(value,) for value in values], python, build, peer, whole=True)


def _totals() -> Iterator[Case]:
    most = 2**63 - 1
    for kind, values in (
        ("Int64", []),
        ("Nullable(Int64)", [None]),
        ("Int64", [most, 1]),
        ("Int8", [127, 127]),
        ("UInt64", [2**64 - 1, 1]),
        ("Bool", [True, True, False]),
        ("Decimal(9, 2)", [Decimal("9999999.99")] * 3),
        ("Float64", [1e308, -1e308, 1.0]),
    ):
        yield _total(f"sum of {len(values)}", kind, values, _sum, lambda r: r.a.sum())
    yield _total("mean of large", "Int64", [most, most], statistics.fmean, lambda r: r.a.mean())
    yield _total("mean", "Int64", [1, 2], statistics.fmean, lambda r: r.a.mean())
    yield _total("mean", "Decimal(9, 2)", [Decimal("0.01"), Decimal("0.02")], statistics.mean, lambda r: r.a.mean())
    yield _total("mean of nothing", "Int64", [], lambda a: None, lambda r: r.a.mean())
    yield _total("min of nothing", "Int64", [], lambda a: None, lambda r: r.a.min())
    yield _total("max of nothing", "String", [], lambda a: None, lambda r: r.a.max())
    yield _total("max of texts", "String", ["a", "é"], max, lambda r: r.a.max())
    shifted = [10**9 + 1.0, 10**9 + 2.0, 10**9 + 3.0]
    yield _total("var far from 0", "Float64", shifted, statistics.variance, lambda r: r.a.var())
    yield _total("std", "Int64", [1, 2, 4], statistics.stdev, lambda r: r.a.std())
    yield _total("var of one", "Int64", [5], statistics.variance, lambda r: r.a.var())
    yield _total("median", "Int64", [1, 2, 3, 4], statistics.median, lambda r: r.a.median())
    quarter: Build = lambda r: r.a.quantile(0.25)  # noqa: E731
    yield _total("quantile", "Int64", [1, 2, 3, 4], _quarter, quarter)
    counted: Build = lambda r: r.t.agg(n=("a", "count"))  # noqa: E731
    yield _total("count", "Nullable(Int64)", [1, None], lambda a: 1, counted, lambda r: r.a.count())
    yield _total("nunique", "Nullable(Int64)", [1, 1, None, 2], lambda a: 2, lambda r: r.a.nunique())
    yield _total("any of nothing", "Bool", [], any, lambda r: r.a.any())
    yield _total("all of nothing", "Bool", [], all, lambda r: r.a.all())
    yield _total("all", "Nullable(Bool)", [True, None], lambda a: True, lambda r: r.a.all())
    yield _total("collect", "Int64", [3, 1, 2], list, lambda r: r.a.collect())


def _sum(values: list[Any]) -> Any:
    return sum(value for value in values if value is not None)


def _quarter(values: list[Any]) -> float:
    return statistics.quantiles(values, n=4, method="inclusive")[0]


def _totals_of_many() -> Iterator[Case]:
    fill = f"SELECT number * 7919 % 1000003 FROM numbers({MANY})"
    rows: list[Row] = [(number * 7919 % 1_000_003,) for number in range(MANY)]
    quarter: Build = lambda r: r.a.quantile(0.25)  # noqa: E731
    totals: list[tuple[str, Any, Build]] = [
        ("nunique of many", lambda a: len(set(a)), lambda r: r.a.nunique()),
        ("quantile of many", _quarter, quarter),
        ("median of many", statistics.median, lambda r: r.a.median()),
        ("sum of many", sum, lambda r: r.a.sum()),
    ]
    for name, python, build in totals:
        yield Case("totals", name, ("Int64",), rows, python, build, whole=True, fill=fill)


def _joins() -> Iterator[Case]:
    group, kinds = "joins", ("Int64", "String")
    left: list[Row] = [(1, "x"), (2, "y")]
    right: list[Row] = [(1, "r"), (3, "s")]

    def joined(how: str) -> tuple[Build, Build]:
        ours: Build = lambda r: r.t.join(r.other, on="a", how=how).order_by("a")  # noqa: E731
        peer: Build = lambda r: _without_key(r.t.join(r.other, "a", how=how)).order_by("a")  # noqa: E731
        return ours, peer

    expected: dict[str, list[list[Any]]] = {
        "inner": [[1, "x", "r"]],
        "left": [[1, "x", "r"], [2, "y", None]],
        "semi": [[1, "x"]],
        "anti": [[2, "y"]],
    }
    for how, rows in expected.items():
        ours, peer = joined(how)
        yield Case(group, how, kinds, left, lambda mine, theirs, e=rows: e, ours, peer, whole=True, other=right)
    nulls: list[Row] = [(None, "x"), (1, "y")]
    ours, peer = joined("inner")
    kinds = ("Nullable(Int64)", "String")
    yield Case(
        group,
        "on None",
        kinds,
        nulls,
        lambda a, b: [[1, "y", "r"]],
        ours,
        peer,
        whole=True,
        other=[(None, "q"), (1, "r")],
    )


def _without_key(joined: Any) -> Any:
    """Ibis keeps the key of the right side of a left join."""
    return joined.drop("a_right") if "a_right" in joined.columns else joined


def _windows() -> Iterator[Case]:
    group = "windows"
    rows: list[Row] = [(3, 10), (1, 20), (2, 20)]
    ours: dict[str, Any] = {
        "lag": lambda c: c("b").lag().over(order_by="a"),
        "lead": lambda c: c("b").lead().over(order_by="a"),
        "cumsum": lambda c: c("b").cumsum().over(order_by="a"),
        "mean of all": lambda c: c("b").mean().over(),
    }
    peers: dict[str, Any] = {
        "lag": lambda t, w: t.b.lag().over(w(order_by=t.a)),
        "lead": lambda t, w: t.b.lead().over(w(order_by=t.a)),
        "cumsum": lambda t, w: t.b.cumsum(order_by=t.a),
        "mean of all": lambda t, w: t.b.mean().over(w()),
    }
    expected: dict[str, list[Any]] = {
        "lag": [None, 20, 20],
        "lead": [20, 10, None],
        "cumsum": [20, 40, 50],
        "mean of all": [50 / 3] * 3,
    }
    for name, values in expected.items():
        answer = [[a, b, v] for (a, b), v in zip(sorted(rows), values, strict=True)]
        build: Build = lambda r, f=ours[name]: r.t.with_columns(v=f(r.col)).order_by("a")  # noqa: E731
        peer: Build = lambda r, f=peers[name]: r.t.mutate(v=f(r.t, r.window)).order_by("a")  # noqa: E731
        python = lambda *_, e=answer: e  # noqa: E731
        yield Case(group, name, ("Int64", "Int64"), rows, python, build, peer, whole=True)
