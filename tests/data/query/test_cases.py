"""`when(…).then(…).otherwise(…)`."""

from __future__ import annotations

import pytest

from aaiclick.data import Context, col, when
from aaiclick.data.provenance.column_sources import trace
from aaiclick.errors import InputError


async def test_the_first_case_that_is_true_is_taken(context: Context) -> None:
    made = await context.create_object_from_value({"a": [1, 2, 3, None], "b": ["p", "q", "r", "s"]})
    term = when(col("a") > 2).then("much").when(col("a") > 1).then(col("b")).otherwise("little")
    assert await made.select(x=term).data() == {"x": ["little", "q", "much", "little"]}
    assert await made.select(x=when(col("a") == 1).then(col("a") * 2)).data() == {"x": [2, None, None, None]}
    assert await made.where(when(col("a") == 1).then(True).otherwise(False)).count() == 1
    assert await made.select(x=~when(col("a") > 2).then(False).otherwise(col("a") == 1)).data() == {
        "x": [False, True, True, None]
    }


async def test_its_type_is_known(context: Context) -> None:
    made = await context.create_object_from_value({"a": [2**62]})
    term = when(col("a") > 1).then(col("a")).otherwise(0)
    assert made.select(x=term).schema.types == {"x": "Int64"}
    with pytest.raises(Exception, match="beyond the range"):
        await made.select(x=term * 4).data()


async def test_conditions_only_decide(context: Context) -> None:
    made = await context.create_object_from_value({"a": [1], "b": [1], "c": [1]})
    found = trace(made.select(x=when(col("a") > 1).then(col("b")).otherwise(col("c")))._relation).columns["x"]
    assert {(each.column, each.how) for each in found} == {
        ("a", "CONDITIONAL"),
        ("b", "TRANSFORMATION"),
        ("c", "TRANSFORMATION"),
    }


def test_a_text_is_no_condition() -> None:
    with pytest.raises(InputError, match="raw"):
        when("a > 1")
    assert repr(when(col("a") > 1)) == "when(…)"
