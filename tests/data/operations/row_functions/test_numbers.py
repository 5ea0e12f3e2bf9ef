"""Functions of numbers, compared with Python's."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from aaiclick.data import Context, col, raw
from aaiclick.errors import DataRefused, InputError

FLOATS = [0.0, -0.0, 1e-300, 1e-9, 0.5, -0.5, 1.0, -1.0, 2.75, 700.0, -700.0]
WHOLE = [0, 1, -1, 12, -18, 2**31, 2**63 - 1, -(2**63)]


def degree(function: Callable[[float], float]) -> Callable[[float], float]:
    def of(value: float) -> float:
        try:
            return function(value)
        except ValueError:
            return (
                math.nan
                if function not in (math.atanh, math.log1p) or abs(value) > 1
                else math.copysign(math.inf, value)
            )

    return of


@pytest.mark.parametrize(
    "name",
    [
        *("asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
        "expm1",
        "log1p",
        "degrees",
        "radians",
    ],
)
async def test_functions_of_floats_are_pythons_to_the_last_digits(context: Context, name: str) -> None:
    made = await context.create_object_from_value([*FLOATS, None])
    found = await getattr(made, name)().data()
    assert found.pop() is None
    for value, got in zip(FLOATS, found, strict=True):
        wanted = degree(getattr(math, name))(value)
        assert got == wanted or math.isclose(got, wanted, rel_tol=4e-15) or (math.isnan(got) and math.isnan(wanted)), (
            value
        )


async def test_functions_of_two_floats(context: Context) -> None:
    made = await context.create_object_from_value({"y": [1.0, -1.0, 0.0, None], "x": [1.0, -2.0, -1.0, 1.0]})
    found = await made.select(a=col("y").atan2(col("x")), h=col("y").hypot(col("x"))).data()
    pairs = [(1.0, 1.0), (-1.0, -2.0), (0.0, -1.0)]
    assert found["a"] == [*(pytest.approx(math.atan2(y, x)) for y, x in pairs), None]
    assert found["h"] == [*(pytest.approx(math.hypot(y, x)) for y, x in pairs), None]


@pytest.mark.parametrize("right", [0, 1, 8, -6, 2**31, 2**62])
async def test_divisors_and_multiples_are_pythons_or_refused(context: Context, right: int) -> None:
    for left in WHOLE:
        made = await context.create_object_from_value([left, None], fields={"value": "Nullable(Int64)"})
        assert await made.gcd(right).data() == [math.gcd(left, right), None]
        if (wanted := math.lcm(left, right)) < 2**64:
            assert await made.lcm(right).data() == [wanted, None]
        else:
            with pytest.raises(DataRefused, match="beyond the range"):
                await made.lcm(right).data()


async def test_bits_are_counted_as_python_counts_them(context: Context) -> None:
    made = await context.create_object_from_value([*WHOLE, None])
    assert await made.bit_count().data() == [*(value.bit_count() for value in WHOLE), None]
    for kind in ("Int8", "UInt64"):
        narrow = await context.create_object_from_value([1, 100], fields={"value": kind})
        assert await narrow.bit_count().data() == [1, 3]


@pytest.mark.parametrize("name", ["gcd", "lcm"])
async def test_what_is_no_whole_number_has_no_divisors(context: Context, name: str) -> None:
    for given in ([1.5], ["a"], [2**70]):
        made = await context.create_object_from_value(given)
        with pytest.raises(InputError, match=f"{name}: .* whole numbers"):
            getattr(made, name)(2)


async def test_every_kind_of_number_knows_whether_it_is_finite(context: Context) -> None:
    for given in ([1, None], [Decimal("1.5"), None], [2**200, None]):
        made = await context.create_object_from_value(given)
        assert await made.is_finite().data() == [True, None]
        assert await made.is_inf().data() == [False, None]


@pytest.mark.parametrize("closed", ["both", "left", "right", "neither"])
async def test_between_takes_the_ends_that_are_asked_for(context: Context, closed: str) -> None:
    made = await context.create_object_from_value([1, 2, 3, 4, None])
    low, high = closed in ("both", "left"), closed in ("both", "right")
    assert await made.between(2, 3, closed=closed).data() == [False, low, high, False, None]
    assert await made.select(x=col("value").between(col("value"), 9, closed)).count() == 5
    with pytest.raises(InputError, match="both, left"):
        made.between(1, 2, closed="open")


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("labels", [None, ["a", "b"], ["under", "a", "b", "over"]])
async def test_numbers_are_cut_as_pandas_and_polars_cut_them(
    context: Context, right: bool, labels: list[str] | None
) -> None:
    values = [-1.0, 0.0, 2.5, 5.0, 7.0, 10.0, 11.0]
    edges = [0, 5, 10]
    names = labels or (
        ["(-inf, 0]", "(0, 5]", "(5, 10]", "(10, inf)"] if right else ["(-inf, 0)", "[0, 5)", "[5, 10)", "[10, inf)"]
    )
    places = [sum(edge < value if right else edge <= value for edge in edges) for value in values]
    full: list[Any] = names if len(names) == 4 else [None, *names, None]
    made = await context.create_object_from_value([*values, None, math.nan], fields={"value": "Nullable(Float64)"})
    found = await made.cut(edges, labels, right).data()
    assert found == [*(full[place] for place in places), None, None]


@pytest.mark.parametrize(
    ("edges", "labels"),
    [([], None), ([2, 1], None), ([1, 1], None), ([1, "a"], None), ([1, 2], ["x", "y"]), ([1], [1, 2])],
)
def test_edges_that_do_not_rise_and_labels_that_do_not_fit_are_refused(edges: Any, labels: Any) -> None:
    with pytest.raises(InputError, match=r"edges|labels"):
        col("a").cut(edges, labels)


async def test_what_lies_under_none_is_not_looked_at(context: Context) -> None:
    made = await context.create_object_from_value([2**63 - 1, 6], fields={"value": "Int64"})
    hidden = await made.select(n=raw(f"nullIf(value, {2**63 - 1})"))
    assert hidden.schema["n"].type == "Nullable(Int64)"
    assert await hidden["n"].lcm(4).data() == [None, 12]
