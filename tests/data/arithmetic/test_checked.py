"""Whole numbers and decimals beside Python's: exactly, or refused."""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal, localcontext
from itertools import product
from typing import Any

import pytest

from aaiclick.data import Context, Object, col
from aaiclick.data.arithmetic.checked import QUOTIENT_SCALE, added, limited_total, wrapped
from aaiclick.data.query.relations import column_of
from aaiclick.data.typing.grammar import Type, parse
from aaiclick.errors import DataRefused

WHOLE = ["Int8", "UInt8", "Int32", "UInt32", "Int64", "UInt64", "Nullable(Int64)", "Int128", "UInt128", "Int256"]
DECIMALS = ["Decimal(9, 2)", "Decimal(18, 4)", "Nullable(Decimal(38, 10))", "Decimal(76, 20)", "Int64", "UInt8"]
SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}


def limits(kind: Type) -> tuple[int, int]:
    bare = kind.bare
    signed = bare.name.startswith("Int")
    return (-(2 ** (bare.bits - 1)), 2 ** (bare.bits - 1) - 1) if signed else (0, 2**bare.bits - 1)


def edges(text: str) -> list[Any]:
    kind = parse(text)
    if kind.bare.name == "Decimal":
        digits, scale = kind.bare.numbers
        most = Decimal(f"{10**digits - 1}e-{scale}")
        found: list[Any] = [most, most.copy_negate(), Decimal(0), Decimal(1).scaleb(-scale)]
        found += [Decimal("7.25"), Decimal("-7.5")]
    else:
        low, high = limits(kind)
        found = [low, high, low + 1, high - 1, 0, 1, 7, 2]
        found += [-1, -7, -2] if low else []
    return [*found, None] if kind.is_nullable else found


async def table(context: Context, one: str, other: str) -> Object:
    rows = list(product(edges(one), edges(other)))
    columns = {"k": list(range(len(rows))), "a": [a for a, _ in rows], "b": [b for _, b in rows]}
    return await context.create_object_from_value(columns, fields={"k": "Int64", "a": one, "b": other})


async def check(made: Object, sign: str, rows: list[tuple[Any, Any]], model: Callable[..., Any]) -> None:
    """All rows that have an answer in one query; of those that have none, a few alone."""
    query = made.with_columns(v=SIGNS[sign](col("a"), col("b")))
    kind = column_of(query._relation, "v").kind
    expected = {number: model(a, b, kind) for number, (a, b) in enumerate(rows)}
    right = {number: value for number, value in expected.items() if value is not NotImplemented}
    wrong = [number for number in expected if number not in right]
    found = await made.where(col("k").isin(list(right))).with_columns(v=SIGNS[sign](col("a"), col("b"))).data()
    assert dict(zip(found["k"], found["v"], strict=True)) == right
    for number in (*wrong[:2], *wrong[-1:]):
        with suppress(DataRefused), localcontext(prec=200):
            found = await made.where(col("k") == number).with_columns(v=SIGNS[sign](col("a"), col("b"))).data()
            assert found["v"] == [SIGNS[sign](*map(Decimal, rows[number]))], "neither exact nor refused"


def whole(sign: str) -> Callable[..., Any]:
    def model(a: int | None, b: int | None, kind: Type) -> Any:
        if a is None or b is None:
            return None
        if sign in ("//", "%") and (b == 0 or (b == -1 and a < -7)):
            return NotImplemented  # the least number by -1 is refused by ClickHouse
        low, high = limits(kind)
        value = SIGNS[sign](a, b)
        if kind.bare.bits == 256 and not low * (1 - 1e-13) < value < high * (1 - 1e-13):
            return NotImplemented  # by an estimate
        return value if low <= value <= high else NotImplemented

    return model


@pytest.mark.parametrize("one", WHOLE)
async def test_whole_numbers_are_those_of_python_or_refused(context: Context, one: str) -> None:
    for other in WHOLE:
        made = await table(context, one, other)
        rows = list(product(edges(one), edges(other)))
        for sign in ("+", "-", "*"):
            await check(made, sign, rows, whole(sign))
        await check_quotients(made, rows)


async def check_quotients(made: Object, rows: list[tuple[Any, Any]]) -> None:
    """Of the least number by -1 ClickHouse refuses the quotient, and the remainder too."""
    keep = [n for n, (a, b) in enumerate(rows) if b != 0 and (a is None or b != -1 or a > -8)]
    query = made.where(col("k").isin(keep)).with_columns(q=col("a") // col("b"), r=col("a") % col("b"))
    found = await query.data()
    expected = [(n, *((None, None) if None in rows[n] else divmod(rows[n][0], rows[n][1]))) for n in keep]
    assert sorted(zip(found["k"], found["q"], found["r"], strict=True)) == expected


@pytest.mark.parametrize("sign", ["+", "-", "*"])
async def test_decimals_are_those_of_python_or_refused(context: Context, sign: str) -> None:
    for one, other in product(DECIMALS, DECIMALS):
        if "Decimal" in one + other:
            made = await table(context, one, other)
            await check(made, sign, list(product(edges(one), edges(other))), decimals(sign))


def decimals(sign: str) -> Callable[..., Any]:
    def model(a: Any, b: Any, kind: Type) -> Any:
        if a is None or b is None:
            return None
        with localcontext(prec=200):
            value, (digits, scale) = SIGNS[sign](Decimal(a), Decimal(b)), kind.bare.numbers
            limit = Decimal(10) ** (digits - scale) * Decimal("0.9999999999999")
            if digits < 76:  # the bits of a decimal hold a little more than its digits
                bits = {9: 31, 18: 63, 38: 127}[digits]
                return value if abs(value).scaleb(scale) < 2**bits else NotImplemented
            near = abs(value) if sign == "*" else abs(Decimal(a)) + abs(Decimal(b))
            return value if near < limit else NotImplemented

    return model


async def test_quotients_of_decimals_are_rounded_down_whatever_the_signs(context: Context) -> None:
    pairs = [("7.25", 2), ("-7.50", 2), ("7.50", -2), ("-0.01", 3), ("9999999.99", 2**63 - 1), ("-7.25", -2)]
    made = await context.create_object_from_value(
        {"a": [Decimal(a) for a, _ in pairs], "b": [b for _, b in pairs]}, fields={"a": "Decimal(9, 2)", "b": "Int64"}
    )
    found = await made.with_columns(q=col("a") // col("b"), r=col("a") % col("b")).data()
    for (a, b), q, r in zip(pairs, found["q"], found["r"], strict=True):
        assert q == (Decimal(a) / b).__floor__()
        assert q * b + r == Decimal(a)
        assert not r or (r > 0) == (b > 0)
    assert await (made["a"] % 2).data() == [Decimal(a) - 2 * (Decimal(a) / 2).__floor__() for a, _ in pairs]


async def test_quotients_of_decimals_have_eighteen_digits_after_the_point(context: Context) -> None:
    made = await context.create_object_from_value([Decimal("1.00"), Decimal("-2.50")])
    assert QUOTIENT_SCALE == 18
    assert await (made / 3).data() == [Decimal("0." + "3" * 18), Decimal("-0.8" + "3" * 17)]
    with pytest.raises(DataRefused):
        await (made / 0).data()


async def test_sums_do_not_wrap(context: Context) -> None:
    for kind, most in (("Int64", 2**63 - 1), ("UInt64", 2**64 - 1), ("Int128", 2**127 - 1)):
        made = await context.create_object_from_value({"a": [most, 1], "k": [1, 2]}, fields={"a": kind})
        for query in (made["a"].sum(), made.group_by(col("k") > 0).sum("a")):
            with pytest.raises(DataRefused, match="wider type"):
                await query.data()
        assert await made["a"].sum().wrapping().data() == (0 if kind[0] == "U" else -most - 1)
        assert await made.where("k = 1")["a"].sum().data() == most
        with pytest.raises(DataRefused):
            await made.with_columns(s=col("a").cumsum().over(order_by="k")).data()
    assert await (await context.create_object_from_value([2**63 - 1] * 2)).mean().data() == 2.0**63
    large = await context.create_object_from_value([Decimal(10**38 - 1)] * 3)
    assert await large.sum().data() == 3 * (10**38 - 1)


async def test_a_refusal_names_the_operation_and_what_to_do(context: Context) -> None:
    made = await context.create_object_from_value([2**63 - 1])
    for query, told in ((made + 1, "sum"), (-2 - made, "difference"), (made * 2, "product")):
        with pytest.raises(DataRefused, match=f"a {told} is beyond .* wrapping"):
            await query.data()


async def test_wrapping_says_it_in_clickhouses_words(context: Context) -> None:
    made = await context.create_object_from_value({"a": [2**63 - 1], "b": [2]})
    assert await ((made["a"] + 1) * made["b"]).wrapping().data() == [0]
    assert await made.with_columns(v=(col("a") + col("b")).wrapping())["v"].data() == [-(2**63) + 1]
    assert await (-made["b"]).wrapping().data() == [-2]
    assert "accurateCast" not in ((made["a"] + 1) * 3).wrapping().explain()


async def test_what_lies_under_none_is_not_looked_at(context: Context) -> None:
    made = await context.create_object_from_value({"a": [2**63 - 1, 1], "c": [True, False]})
    hidden = col("c").choose(None, col("a"))
    assert await made.with_columns(v=hidden + 1)["v"].data() == [None, 2]
    assert await made.with_columns(v=hidden * col("a"))["v"].data() == [None, 1]
    assert await made.with_columns(v=-hidden - hidden)["v"].data() == [None, -2]


async def test_two_to_the_62_has_its_remainder(context: Context) -> None:
    made = await context.create_object_from_value([2**62])
    assert await (made % (2**63 - 1)).data() == [2**62]


LARGE = 2**63 - 1


@pytest.mark.parametrize(
    "made",
    [
        lambda a: (a > 3).choose(a, 0) + LARGE,
        lambda a: a.least(100) + LARGE,
        lambda a: a.greatest(0) + LARGE,
        lambda a: a.sign() * LARGE * 2,
        lambda a: a.coalesce(0) + LARGE,
        lambda a: a.fill_null(0) + LARGE,
        lambda a: (a & a) + LARGE,
        lambda a: (a & 255) + LARGE,
        lambda a: (a >> 0) + LARGE,
        lambda a: a.clip(0, 100) + LARGE,
        lambda a: a.round(-3),
        lambda a: a.max() + 1,
    ],
)
@pytest.mark.parametrize("kind", ["Int64", "Nullable(Int64)"])
async def test_what_was_chosen_or_masked_before_is_checked_too(context: Context, made: Any, kind: str) -> None:
    numbers = await context.create_object_from_value([LARGE, 5], fields={"value": kind})
    with pytest.raises(DataRefused, match="beyond the range"):
        await made(numbers).data()


async def test_whole_numbers_are_rounded_or_refused(context: Context) -> None:
    small = await context.create_object_from_value([127, None, -128, 15], fields={"value": "Nullable(Int8)"})
    with pytest.raises(DataRefused, match="beyond the range"):
        await small.round(-1).data()
    assert await small.cast("Nullable(Int16)").round(-1).data() == [130, None, -130, 20]
    assert await small.round(1).data() == [127, None, -128, 15]


async def test_the_least_and_the_greatest_of_long_numbers_are_known(context: Context) -> None:
    made = await context.create_object_from_value([LARGE, 5])
    for query in (made.least(LARGE) + LARGE, made.clip(0, LARGE) + LARGE, made.greatest(2**63) * 2):
        with pytest.raises(DataRefused, match="beyond the range"):
            await query.data()


@pytest.mark.parametrize("kind", ["UInt256", "Int256"])
async def test_a_decimal_by_more_than_a_decimal_holds_is_0(context: Context, kind: str) -> None:
    _, most = limits(parse(kind))
    least = -most if kind.startswith("I") else 10**76
    made = await context.create_object_from_value(
        {"a": [Decimal("-7.5"), Decimal(8), Decimal(9), None], "b": [most, least, 4, most]},
        fields={"a": "Nullable(Decimal(9, 2))", "b": kind},
    )
    assert await (made["a"] / made["b"]).data() == [0, 0, Decimal("2.25"), None]


async def test_a_sum_of_products_needs_no_check_where_all_rows_are_in_range(context: Context) -> None:
    most = Decimal("9" * 18).scaleb(-2)
    values = {"a": [most, most, -most], "b": [most, -most, -most], "c": [most, most, most]}
    rows = await context.create_object_from_value(values, fields=dict.fromkeys("abc", "Decimal(18, 2)"))
    product = col("a") * col("b") * col("c")
    with localcontext(prec=100):
        right = sum((a * b * c for a, b, c in zip(*values.values(), strict=True)), Decimal(0))
    for query in (rows.agg(s=product.sum()), rows.with_columns(p=product).agg(s=col("p").sum())):
        assert "throwIf" not in query.explain()
        assert await query.data() == {"s": right}


async def test_a_sum_of_wider_products_is_checked(context: Context) -> None:
    most = Decimal("9" * 38)
    rows = await context.create_object_from_value({"a": [most] * 200}, fields={"a": "Decimal(38, 0)"})
    summed = rows.agg(s=(col("a") * col("a")).sum())
    assert "throwIf" in summed.explain()
    with pytest.raises(DataRefused, match="a total"):
        await summed.data()


def test_limits_are_known_only_where_they_hold() -> None:
    small, wide = parse("Decimal(18, 2)"), parse("Decimal(76, 6)")
    product = added("*")([small, small])
    assert product is not None
    assert product.limit == 2**126
    assert wrapped("*")([parse("Int64"), parse("Int64")]).limit is None  # type: ignore[union-attr]
    assert added("*")([wide, small]).limit is None  # type: ignore[union-attr]
    for limit, checked in ((2**189, False), (2**191, True), (None, True)):
        total = limited_total([limit])([wide])
        assert total is not None
        assert ("throwIf" in total.sql) == checked
    of_rows = limited_total([None])([small])
    assert of_rows is not None
    assert of_rows.limit == 2**125
