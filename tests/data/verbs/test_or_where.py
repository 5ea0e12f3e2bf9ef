"""`or_where`: what was asked before, or something else."""

from __future__ import annotations

import pytest

from aaiclick.data import Object, col, row_number
from aaiclick.data.compiling.select_sql import expression_sql
from aaiclick.data.query.expressions import Column, Raw
from aaiclick.data.verbs.or_where import any_of
from aaiclick.errors import InputError


def test_all_before_or_all_of_these() -> None:
    found = any_of([Column("a"), Raw("b = 1")], [Column("c")])
    assert expression_sql(found) == "toBool(toBool(`a` AND (b = 1)) OR `c`)"
    with pytest.raises(InputError, match="it must follow a where"):
        any_of([], [Column("c")])


async def test_none_is_no_reason_to_leave_a_row_out(sales: Object) -> None:
    found = sales.where(col("pieces") > 2).or_where(col("price") == 2.0)
    assert await found["price"].data() == [1.5, 2.0]


def test_what_needs_other_rows_is_refused(sales: Object, numbers: Object) -> None:
    computed = sales.with_columns(x=1).where(col("x") == 1)
    for condition in (row_number().over(order_by="price") == 1, numbers == 1):
        for frame in (sales.where("paid"), computed):
            with pytest.raises(InputError):
                frame.or_where(condition)
