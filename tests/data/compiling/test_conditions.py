"""Conditions: where AND and OR are seen, and where each part is left as it was."""

from __future__ import annotations

from aaiclick.data import Context, Object, col


async def _rows(context: Context) -> Object:
    values = {"a": [0, 1, 2, None], "b": [4, 5, 0, 7], "t": [True, False, None, True]}
    fields = {"a": "Nullable(Int64)", "b": "Int64", "t": "Nullable(Bool)"}
    return await context.create_object_from_value(values, fields=fields)


async def test_and_or_and_not_are_seen_where_nothing_can_fail(context: Context) -> None:
    rows = await _rows(context)
    text = rows.where((col("a") == 1) & (col("b").isin([5]) | ~(col("b") > 4))).explain()
    expected = "(toBool(`a` = 1) AND (toBool(`b` IN (5)) OR (NOT toBool(`b` > 4))))"
    assert text.endswith(f"WHERE {expected}")


async def test_a_part_that_can_fail_is_not_moved(context: Context) -> None:
    rows = await _rows(context)
    found = rows.where((col("b") > 0) & (10 // col("b") < 3))
    assert "WHERE toBool(toBool(`b` > 0) AND " in found.explain()
    assert (await found["b"].data()) == [4, 5, 7]


async def test_none_is_neither_true_nor_false(context: Context) -> None:
    rows = await _rows(context)
    conditions = {
        "and": (col("a") > 0) & (col("b") > 0),
        "or": (col("a") > 0) | (col("b") > 6),
        "not": ~(col("a") > 0),
        "truth": col("t") & (col("b") > 0),
        "both": ~((col("a") > 0) | col("t")),
    }
    for name, condition in conditions.items():
        kept = await rows.where(condition)["b"].data()
        column = await rows.with_columns(kept=condition)[["b", "kept"]].data()
        assert sorted(kept) == sorted(b for b, is_kept in zip(column["b"], column["kept"], strict=True) if is_kept), (
            name
        )


async def test_a_column_of_the_same_condition_stays_a_truth(context: Context) -> None:
    rows, condition = await _rows(context), (col("b") > 0) & (col("b") < 6)
    found = rows.with_columns(c=condition).where(condition)["c"]
    assert await found.data() == [True, True]
