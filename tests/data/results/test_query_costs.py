"""What a query costs."""

from __future__ import annotations

from aaiclick.data import Context, Object, col


async def test_stats_tell_what_was_read(context: Context) -> None:
    numbers = await context.create_object_from_value({"a": list(range(1_000)), "b": ["x"] * 1_000})
    query = numbers.where(col("a") >= 990).order_by("a", descending=True)
    found = await query.stats()
    assert (found.rows, found.rows_read) == (10, 1_000)
    assert found.bytes_read >= 8_000
    assert found.seconds > 0
    assert str(found).startswith("10 rows; 1000 rows and ")


async def test_explain_tells_them_after_they_were_asked_for(numbers: Object) -> None:
    query = numbers * 2
    plain = query.explain()
    found = await query.stats()
    assert query.explain() == f"-- {found}\n{plain}"
    assert (await query.where("0").stats()).rows == 0
