"""Queries in the form that is stored, and tables as relations."""

from __future__ import annotations

from aaiclick.data import Context, Object, Schema
from aaiclick.data.tables.stored_tables import AS_SORTED, form_of, read_schemas, table_of


async def test_the_only_column_of_a_list_is_called_value(sales: Object) -> None:
    assert form_of(sales["price"]._relation, "list").relation.names == ("value",)
    assert form_of(sales._relation, "table").settings is None
    assert form_of(sales.order_by("price")._relation, "table").settings == AS_SORTED


async def test_a_schema_is_read_as_it_was_made(context: Context, sales: Object) -> None:
    found = await read_schemas(context.client, [sales.table, "nothing_of_that_name"])
    assert {table: schema.types for table, schema in found.items()} == {sales.table: sales.schema.types}


def test_times_without_a_zone_are_known_to_be_so() -> None:
    table = table_of("t", Schema.from_fields({"a": "DateTime", "b": "DateTime('UTC')", "c": "Bool"}))
    assert [column.clock for column in table.columns] == ["naive", "aware", ""]
    assert table.columns[2].truth
