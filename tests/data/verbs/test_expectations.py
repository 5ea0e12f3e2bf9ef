"""What `expect` finds, tells and gives back."""

from __future__ import annotations

import logging
import pickle
from datetime import UTC, datetime, timedelta
from math import nan

import pytest

from aaiclick.data import Context, Object, col
from aaiclick.data.context import opened_context
from aaiclick.errors import ExpectationFailed
from aaiclick.telemetry import masks


@pytest.fixture
async def orders(context: Context) -> Object:
    """Six orders with something wrong in each column."""
    return await context.create_object_from_value(
        {
            "id": [1, 2, 2, 3, 4, 4],
            "price": [1.5, -1.0, nan, None, 7.0, 200.0],
            "mail": ["a@b", "c", None, "d@e", "f@g", "h@i"],
            "city": ["Rome", "Oslo", "Rome", "Atlantis", None, "Oslo"],
        },
        fields={"price": "Nullable(Float64)"},
    )


async def test_all_expectations_are_looked_at_in_one_query(context: Context, orders: Object) -> None:
    cities = await context.create_object_from_value({"name": ["Rome", "Oslo", None]})
    found = await orders.expect(
        unique="id",
        not_null=["id", "price"],
        between={"price": (0, 100)},
        matches={"mail": "@"},
        references={"city": cities["name"]},
        rows=(1, 5),
        on_fail="warn",
    )
    assert (found.rows, found.passed) == (6, False)
    assert [(check.name, check.column, check.failed_rows, check.passed) for check in found.checks] == [
        ("unique", "id", 4, False),
        ("not_null", "id", 0, True),
        ("not_null", "price", 1, False),
        ("between", "price", 3, False),
        ("matches", "mail", 1, False),
        ("references", "city", 1, False),
        ("rows", "", 0, False),
    ]
    assert [check.line for check in found.failed] == [
        "unique id (once each): 4 of 6 rows, such as id=2; id=4",
        "not_null price (no NULL): 1 of 6 rows, such as id=3, mail=d@e, city=Atlantis",
        "between price (0 to 100): 3 of 6 rows, such as price=-1; price=200; price=nan",
        "matches mail ('@'): 1 of 6 rows, such as mail=c",
        "references city (in name of the other): 1 of 6 rows, such as city=Atlantis",
        "rows (1 to 5): 6 found",
    ]
    assert sorted((await (await found.bad_rows("between", "matches")).data())["id"]) == [2, 2, 4]
    assert (await (await found.bad_rows()).data())["id"].count(1) == 0
    assert (await (await found.good_rows()).data())["id"] == [1]


async def test_what_is_broken_is_raised_with_what_was_found(orders: Object) -> None:
    with pytest.raises(
        ExpectationFailed, match=r"between price \(at least 0\): 2 of 6 rows, such as price=-1;"
    ) as told:
        await orders.expect(between={"price": (0, None)})
    assert (await (await told.value.found.bad_rows()).data())["id"] == [2, 2]
    assert str(pickle.loads(pickle.dumps(told.value))) == str(told.value)  # noqa: S301 (our own)


async def test_nulls_and_nan_in_keys(context: Context) -> None:
    """A key with a NULL is equal to none, NaN to NaN, and -0.0 to 0.0."""
    made = await context.create_object_from_value(
        {"a": [1, 1, None, None], "b": [0.0, -0.0, nan, nan], "c": ["x", "y", None, None]},
    )
    found = await made.expect(unique=["a", "b", "c", ("a", "c"), ("a", "b")], on_fail="warn")
    assert [(check.column, check.failed_rows) for check in found.checks] == [
        ("a", 2),
        ("b", 4),
        ("c", 0),
        ("a, c", 0),
        ("a, b", 2),
    ]


async def test_a_table_without_rows_breaks_only_what_is_said_of_the_whole(context: Context) -> None:
    empty = await context.create_object({"a": "Nullable(Int64)", "at": "DateTime64(6, 'UTC')"})
    found = await empty.expect(
        unique="a",
        not_null="a",
        between={"a": (1, 2)},
        references={"a": empty["a"]},
        rows=(1, None),
        fresh_within={"at": timedelta(days=1)},
        on_fail="warn",
    )
    assert [check.name for check in found.failed] == ["rows", "fresh_within"]
    assert [check.found for check in found.failed] == ["0 found", "there is none"]
    assert await (await found.bad_rows()).count() == 0


async def test_freshness_is_the_age_of_the_newest(context: Context) -> None:
    old = datetime(2020, 1, 1, tzinfo=UTC)
    made = await context.create_object_from_value({"old": [old, old], "new": [old, datetime.now(UTC)]})
    found = await made.expect(fresh_within={"old": timedelta(days=1), "new": timedelta(days=1)}, rows=2, on_fail="warn")
    assert {check.column: check.passed for check in found.checks} == {"": True, "old": False, "new": True}


async def test_views_and_queries_are_looked_at_as_they_are(orders: Object) -> None:
    assert (await orders.where("id < 2").expect(unique="id", between={"price": (1.5, 1.5)}, rows=1)).passed
    totals = orders.group_by("id").agg(count="count")
    assert (await totals.expect(unique="id", between={"count": (1, 2)}, rows=4)).passed
    assert (await orders.order_by("id").limit(2).expect(unique="id", rows=2)).passed


async def test_limits_may_be_terms_of_the_same_row(context: Context) -> None:
    made = await context.create_object_from_value({"start": [1, 5], "end": [2, 4]})
    found = await made.expect(between={"end": (col("start"), None)}, on_fail="warn")
    assert found.failed[0].samples == ({"end": "4"},)


async def test_samples_are_masked_and_shortened(context: Context, caplog: pytest.LogCaptureFixture) -> None:
    masks.remember(["hunter2hunter2"])
    try:
        made = await context.create_object_from_value({"a": ["hunter2hunter2", "x" * 5_000, "\x1b[1m"]})
        with caplog.at_level(logging.WARNING, "aaiclick.data"):
            found = await made.expect(matches={"a": "^hunter2hunter2[^2]$"}, on_fail="warn")
    finally:
        masks.forget_all()
    told = caplog.text + found.failed[0].line
    assert "***" in told
    assert not any(each in told for each in ("hunter2", "\x1b", "x" * 1_000))
    assert "expectation not met: matches a" in caplog.text


async def test_the_log_of_operations_tells_which_expectations_held(ch_url: str) -> None:
    async with opened_context(oplog=True) as context:
        made = await context.create_object_from_value({"a": [1, 2]})
        await made.expect(rows=2)
        await made.insert({"a": [3]})
        await made.expect(rows=2, on_fail="warn")
        with pytest.raises(ExpectationFailed):
            await made.expect(rows=2)
        await context.flush_oplog()
        rows = await context.client.rows(
            f"SELECT operation, query FROM aai_oplog WHERE result = '{made.table}' ORDER BY at"
        )
    assert list(zip(*rows.columns, strict=True))[1:] == [
        ("expect_passed", ""),
        ("insert", ""),
        ("expect_warned", "rows (2): 3 found"),
        ("expect_failed", "rows (2): 3 found"),
    ]
