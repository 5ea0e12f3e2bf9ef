"""Verbs with input that cannot be meant: refused by name, before ClickHouse sees it, and never taken silently."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from aaiclick.data import Context, Object, col, lit
from aaiclick.errors import InputError

Verb = Callable[[Any, Any], Any]

REFUSED: dict[str, tuple[Verb, str]] = {
    "two columns of one name": (lambda o, p: o.rename({"a": "b"}), "the same name"),
    "a list of names to rename": (lambda o, p: o.rename(["a"]), "a mapping"),
    "a column that is not there": (lambda o, p: o.rename({"aa": "z"}), "the columns are a, b, t. Did you mean a"),
    "a new column of one that is not there": (lambda o, p: o.with_columns(z=col("zz") + 1), "the columns are"),
    "a window over one": (lambda o, p: o.with_columns(z=col("a").sum().over("zz")), "the columns are"),
    "a list as a column": (lambda o, p: o.with_columns(z=[1, 2]), "a list is not a column"),
    "rows of another Object": (lambda o, p: o.concat(p), "the first has the columns"),
    "a list to concat": (lambda o, p: o.concat([1]), "it must be an Object, a View or a query"),
    "texts below numbers": (lambda o, p: o[["a"]].concat(p[["c"]]), "Int64 beside String.*Cast"),
    "a number as a condition": (lambda o, p: o.where(5), "the same for every row"),
    "None as a condition": (lambda o, p: o.where(None), "the same for every row"),
    "a mapping as a condition": (lambda o, p: o.where({"a": 1}), "the same for every row"),
    "a list as a condition": (lambda o, p: o.where([True, False]), "the same for every row"),
    "a blank condition": (lambda o, p: o.where(" "), "the same for every row"),
    "a constant as a condition": (lambda o, p: o.select("a").or_where(lit(3)), "the same for every row"),
    "a key that is not there": (lambda o, p: o.order_by("zz"), "the columns are"),
    "a place as a key": (lambda o, p: o.order_by(1), "sorted by a constant"),
    "None as a key": (lambda o, p: o.order_by(None), "sorted by a constant"),
    "the top by what is not there": (lambda o, p: o.top(1, "zz"), "the columns are"),
    "a list of no lists": (lambda o, p: o.explode("a"), "it is Int64, not a list"),
    "totals of one name": (lambda o, p: o.agg({"a": "sum"}, a="count"), "two totals"),
    "a total twice": (lambda o, p: o.agg({"a": ["sum", "sum"]}), "two totals"),
    "groups by a constant": (lambda o, p: o.group_by(5).count(), "a column's name"),
    "a join on a number": (lambda o, p: o.join(p, on=5), "a name, a list of names"),
    "a suffix that is no text": (lambda o, p: o.join(o, on="a", suffix=5), "a text"),
    "no list to look in": (lambda o, p: o["a"].isin(5), "it is not a list"),
    "rows of a negative number": (lambda o, p: o.markdown(limit=-1), "0 or more"),
    "a folder that is not there": (lambda o, p: o.export("/nowhere/x.csv"), "cannot be written"),
}


@pytest.fixture
async def other(context: Context) -> Object:
    return await context.create_object_from_value({"a": [1, 2], "c": ["x", "y"]})


@pytest.mark.parametrize("which", REFUSED)
async def test_what_cannot_be_meant_is_refused(context: Context, other: Object, which: str) -> None:
    verb, told = REFUSED[which]
    mine = await context.create_object_from_value({"a": [1, 2], "b": ["x", "y"], "t": [[1], [2]]})

    async def tried() -> None:
        found = verb(mine, other)
        if inspect.iscoroutine(found):
            await found

    with pytest.raises(InputError, match=told):
        await tried()


async def test_lists_of_names_are_taken_where_names_are(context: Context, other: Object) -> None:
    mine = await context.create_object_from_value({"a": [1, 2], "t": [[1], [2]]})
    assert (await other.group_by(["a", "c"]).count().order_by("a").data())["count"] == [1, 1]
    assert await mine.explode(["t"])["t"].data() == [1, 2]
    assert await other.view(selected_fields="a").data() == {"a": [1, 2]}
    assert await other.with_columns(z=lit([1]))["z"].data() == [[1], [1]]
    assert await other.where(True)["a"].data() == [1, 2]
