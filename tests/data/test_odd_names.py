"""Columns may be called almost anything: every verb works on them all the same."""

from __future__ import annotations

import pytest

from aaiclick.data import Context, Frame, Object, View, col, row_number

ODD = """back`tick|quo'te|dou"ble|do.t|l.a|r.a|a b|select|from|l|r|s0|__0|__n|__s0|___|value|0.value|{x:Int8}|%s|--|/*
a\\b|é|😀|count()|*|1|null|self|given|sum|`quoted`"""
NAMES = [name for line in ODD.splitlines() for name in line.split("|")]


@pytest.fixture
async def odd(context: Context) -> Object:
    """Each column has a number of its own and the two that follow."""
    return await context.create_object_from_value(
        {name: [number, number + 1, number + 2] for number, name in enumerate(NAMES)}
    )


async def test_columns_of_any_name_are_kept_apart(odd: Object) -> None:
    assert await odd.data() == {name: [number, number + 1, number + 2] for number, name in enumerate(NAMES)}
    assert list((await (odd * 2 + 1).data()).values()) == [
        [2 * number + 1, 2 * number + 3, 2 * number + 5] for number in range(len(NAMES))
    ]


@pytest.mark.parametrize("name", NAMES)
async def test_a_column_of_any_name_is_chosen_computed_and_replaced(context: Context, odd: Object, name: str) -> None:
    first = NAMES.index(name)
    seen = odd.where(col(name) > first).order_by(name, descending=True)[[name]]
    assert await seen.data() == {name: [first + 2, first + 1]}
    assert isinstance(seen, View)
    opened = await context.open_reference(seen.reference())
    assert await opened.data(orient="records") == [{name: first + 2}, {name: first + 1}]
    replaced = odd.with_columns(**{name: col(name) + 1, "new": col(name) * 10}).where(col(name) > first + 1)
    assert await replaced.order_by(col(name))[[name, "new"]].data() == {
        name: [first + 2, first + 3],
        "new": [10 * first + 10, 10 * first + 20],
    }
    deep: Frame = odd[[name]]
    for _ in range(40):
        deep = deep + 1
    assert await deep.where(odd[name] == first).data() == {name: [first + 40]}


@pytest.mark.parametrize("name", NAMES)
async def test_a_column_of_any_name_is_grouped_joined_and_stored(context: Context, odd: Object, name: str) -> None:
    first = NAMES.index(name)
    values = [first, first + 1, first + 2]
    groups = odd.group_by(name).agg(t=(name, "sum"), w=col(name).max()).order_by(name)
    assert await groups.data() == {name: values, "t": values, "w": values}
    assert await odd.group_by(col(name) % 1).agg(**{name: col(name).sum()}).data() == {"key0": [0], name: [sum(values)]}
    joined = odd.join(odd[[name]].rename({name: "new"}), on={name: "new"}, how="full").order_by(name)
    assert await joined[name].data() == values
    assert await odd.join(odd, on=name, suffix="~").count() == 3
    stored = await odd[[name]].with_columns(n=row_number().over(name))
    assert await stored.insert(stored, {name: [0], "n": [0]}) == 4
    assert await stored.unique(name).count() == len({*values, 0})
    ordered = await context.create_object_from_value({name: values}, order=True)
    other = await context.create_object_from_value({name: values}, order=True)
    assert await (ordered + other - ordered).data() == {name: values}
