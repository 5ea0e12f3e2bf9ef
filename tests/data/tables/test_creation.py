"""The statement that makes a table."""

from __future__ import annotations

import pytest

from aaiclick.data import Schema
from aaiclick.data.tables.creation import creation
from aaiclick.data.tables.storage import read_storage


@pytest.fixture
def schema() -> Schema:
    return Schema.from_fields({"a": "Int64", "b`": "Date"})


def test_a_table_is_in_no_order_unless_it_is_said(schema: Schema) -> None:
    text = creation("t", schema, {"made": "x"}, columns=schema.column_definitions())
    assert "ENGINE = MergeTree ORDER BY tuple() SETTINGS non_replicated_deduplication_window = 1000 COMMENT" in text
    assert '"made": "x"' in text
    ordered = creation("t", Schema(schema.fields, "table", ordered=True), {})
    assert "ORDER BY (`aai_id`)" in ordered


def test_names_are_quoted_wherever_they_stand(schema: Schema) -> None:
    storage = read_storage(schema, "ReplacingMergeTree(b`)", ["b`", "a"], "toYYYYMM(b`)")
    text = creation("t`", schema, {}, storage=storage)
    expected = "ENGINE = ReplacingMergeTree(`b\\``) PARTITION BY (toYYYYMM(`b\\``)) ORDER BY (`b\\``, `a`)"
    assert text.startswith("CREATE TABLE `t\\`` ")
    assert expected in text


def test_a_table_that_is_read_in_parts_is_sorted_by_its_first_column(schema: Schema) -> None:
    text = creation("t", schema, {}, granule=128)
    assert "ORDER BY (`a`) SETTINGS index_granularity = 128" in text
