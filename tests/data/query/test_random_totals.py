"""Random columns of every kind: totals and windows agree with plain Python, or refuse what their type does not hold."""

from __future__ import annotations

import math
import os
import random
import statistics
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from aaiclick.data import Context, Frame, Object, col
from aaiclick.errors import DataRefused

SEEDS = range(100) if os.environ.get("TEST_LONG") else range(4)

pytestmark = pytest.mark.timeout(1200 if os.environ.get("TEST_LONG") else 120)

LIMITS = {
    "Int8": (-(2**7), 2**7 - 1),
    "UInt16": (0, 2**16 - 1),
    "Int32": (-(2**31), 2**31 - 1),
    "Int64": (-(2**63), 2**63 - 1),
    "UInt64": (0, 2**64 - 1),
    "Int128": (-(2**127), 2**127 - 1),
}
SUMS = {"Int8": "Int64", "Int32": "Int64", "UInt16": "UInt64"}
KINDS = [*LIMITS, "Float64", "Decimal(18, 4)"]


def column(chance: random.Random, kind: str, rows: int) -> list[Any]:
    """Small numbers and limits of the type; of floats all that are odd, but for NaN and infinity."""
    if kind == "Float64":
        some: list[Any] = [0.0, -0.0, 1.5, -2.25, 1e9, 1e9 + 1, -3.0]
    elif kind.startswith("Decimal"):
        some = [Decimal(0), Decimal("1.2500"), Decimal("-7.0001"), Decimal(10**13), Decimal("99.9900")]
    else:
        low, high = LIMITS[kind]
        some = [low, high, high // 2, 0, 1, 2, 3, max(low, -2), max(low, -5)]
    wild = chance.random() < 0.5
    few = some if wild else [value for value in some if abs(value) < 100]
    return [None if chance.random() < 0.2 else chance.choice(few) for _ in range(rows)]


def exact(value: int, kind: str) -> int:
    """A whole number that the type of an answer holds."""
    low, high = LIMITS[SUMS.get(kind, kind)]
    if not low <= value <= high:
        raise OverflowError
    return value


def total(values: list[Any], kind: str) -> Any:
    return exact(sum(values), kind) if kind in LIMITS else sum(values)


def product(values: list[Any], kind: str) -> Any:
    return exact(math.prod(values), kind)


def median(values: list[Any], kind: str) -> Any:
    return statistics.median(map(float, values)) if values else None


def variance(values: list[Any], kind: str) -> Any:
    if not values:
        return None
    return math.nan if len(values) < 2 else float(statistics.variance(map(Fraction, values)))


def population(values: list[Any], kind: str) -> Any:
    return float(statistics.pvariance(map(Fraction, values))) if values else None


def mode(values: list[Any], kind: str) -> Any:
    counts = Counter(values)
    return min((value for value in counts if counts[value] == max(counts.values())), default=None)


Model = Callable[[list[Any], str], Any]
TOTALS: dict[str, tuple[Callable[[Any], Any], Model]] = {
    "sum": (lambda x: x.sum(), total),
    "min": (lambda x: x.min(), lambda values, _: min(values, default=None)),
    "max": (lambda x: x.max(), lambda values, _: max(values, default=None)),
    "count": (lambda x: x.count(), lambda values, _: len(values)),
    "nunique": (lambda x: x.nunique(), lambda values, _: len(set(values))),
    "mode": (lambda x: x.mode(), mode),
    "median": (lambda x: x.median(), median),
    "var": (lambda x: x.var(), variance),
    "population": (lambda x: x.var(ddof=0), population),
    "distinct": (lambda x: x.collect(distinct=True), lambda values, _: sorted(set(values))),
    "sorted": (
        lambda x: x.collect(order_by=x, descending=True),
        lambda values, _: sorted(values, reverse=True),
    ),
}


def agrees(found: Any, expected: Any) -> bool:
    if isinstance(expected, float) and isinstance(found, float):
        both = math.isnan(found) and math.isnan(expected)
        return both or math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)
    return bool(found == expected)


async def check(query: Frame, expected: Callable[[], Any], told: str) -> None:
    """The answer is Python's, or both refuse."""
    try:
        wanted = expected()
    except OverflowError:
        with pytest.raises(DataRefused, match="beyond the range"):
            await query.data()
        return
    found = await query.data()
    if isinstance(wanted, list) and isinstance(found, list) and len(found) == len(wanted):
        assert all(map(agrees, found, wanted)), (told, found, wanted)
    else:
        assert agrees(found, wanted), (told, found, wanted)


async def given(context: Context, seed: int, kind: str) -> tuple[random.Random, Object, list[Any], list[int]]:
    chance = random.Random(f"{seed} {kind}")
    rows = chance.choice([0, 1, 2, 7, 12])
    values, keys = column(chance, kind, rows), [chance.randrange(3) for _ in range(rows)]
    columns = {"n": list(range(rows)), "k": keys, "x": values}
    fields = {"n": "Int64", "k": "Int64", "x": f"Nullable({kind})"}
    return chance, await context.create_object_from_value(columns, fields=fields), values, keys


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
async def test_totals_of_random_columns_are_pythons(context: Context, seed: int, kind: str) -> None:
    _, made, values, keys = await given(context, seed, kind)
    known = [value for value in values if value is not None]
    some = [value for value, key in zip(values, keys, strict=True) if value is not None and key == 1]
    for name, (ask, model) in TOTALS.items():
        await check(made.agg(v=ask(col("x")))["v"], partial(model, known, kind), f"{name} {values}")
    for name in ("sum", "mode", "median"):
        chosen = getattr(col("x"), name)(where=col("k") == 1)
        await check(made.agg(v=chosen)["v"], partial(TOTALS[name][1], some, kind), f"{name} {some}")
    if kind in LIMITS and kind != "Int128":
        await check(made["x"].product(), partial(product, known, SUMS.get(kind, kind)), f"product {values}")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
async def test_windows_of_random_columns_are_pythons(context: Context, seed: int, kind: str) -> None:
    chance, made, values, _ = await given(context, seed, kind)
    size, step = chance.randint(1, 4), chance.randint(-3, 3)
    least = chance.randint(1, size)
    x = col("x")

    async def by_row(term: Any, model: Callable[[int], Any], told: str) -> None:
        query = made.with_columns(v=term).order_by("n")["v"]
        await check(query, lambda: [model(row) for row in range(len(values))], f"{told} {values}")

    def last(row: int) -> list[Any]:
        return [value for value in values[max(0, row - size + 1) : row + 1] if value is not None]

    def so_far(row: int) -> int:
        return row + 1 - values[: row + 1].count(None)

    def beside(row: int) -> Any:
        return values[row - step] if 0 <= row - step < len(values) else None

    def rolled(name: str) -> Callable[[int], Any]:
        return lambda row: TOTALS[name][1](last(row), kind) if len(last(row)) >= least else None

    rolling = x.rolling(size, least=least)
    for name in ("sum", "min", "max", "median", "mode"):
        await by_row(getattr(rolling, name)().over(order_by="n"), rolled(name), f"rolling {name} {size} {least}")
    await by_row(rolling.var(ddof=0).over(order_by="n"), rolled("population"), "rolling var")
    await by_row(rolling.count().over(order_by="n"), lambda row: len(last(row)), "rolling count")
    await by_row(x.shift(step).over(order_by="n"), beside, f"shift {step}")
    await by_row(
        x.cumcount().over(order_by="n"), lambda row: len(values[: row + 1]) - values[: row + 1].count(None), "count"
    )
    if kind in ("Int8", "Int32", "Int64", "Int128"):
        wide = {"Int8": "Int32", "Int32": "Int64"}.get(kind, kind)

        def less(row: int) -> Any:
            other = beside(row)
            return None if values[row] is None or other is None else exact(values[row] - other, wide)

        await by_row(x.diff(step).over(order_by="n"), less, f"diff {step}")


@pytest.mark.parametrize("seed", SEEDS)
async def test_ranks_of_random_columns_are_pythons(context: Context, seed: int) -> None:
    _, made, values, keys = await given(context, seed, "Int8")
    ranks = {name: col("x").rank(name).over("k") for name in ("min", "max", "average", "dense", "percent")}
    found = await made.with_columns(**ranks).order_by("n").data()
    for row, (value, key) in enumerate(zip(values, keys, strict=True)):
        among = [v for v, k in zip(values, keys, strict=True) if k == key and v is not None]
        if value is None:
            assert {found[name][row] for name in ranks} == {None}
            continue
        least, most = sum(v < value for v in among) + 1, sum(v <= value for v in among)
        dense = len({v for v in among if v < value}) + 1
        percent = (least - 1) / max(len(among) - 1, 1)
        expected = (least, most, (least + most) / 2, dense, percent)
        assert tuple(found[name][row] for name in ranks) == expected
