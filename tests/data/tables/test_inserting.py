"""Rows of a query for the columns of a table."""

from __future__ import annotations

import pytest

from aaiclick.data import Context, Object, Schema
from aaiclick.data.tables.inserting import insertion
from aaiclick.errors import InputError


async def test_columns_are_matched_by_name_and_cast(context: Context, sales: Object) -> None:
    schema = Schema.from_fields({"pieces": "Nullable(Int32)", "more": "Nullable(String)", "city": "String"})
    found = await insertion(context.client, sales[["city", "pieces"]]._relation, schema)
    assert found.columns == "`pieces`, `city`"
    assert found.taken.names == ("pieces", "city")
    assert found.statement("t").startswith("INSERT INTO `t` (`pieces`, `city`) SELECT CAST(")


async def test_what_does_not_fit_is_refused_with_the_hint(context: Context, sales: Object) -> None:
    schema = Schema.from_fields({"city": "String", "land": "String"})
    with pytest.raises(InputError, match=r"missing: land; unexpected: price.*do this"):
        await insertion(context.client, sales[["city", "price"]]._relation, schema, "do this")
