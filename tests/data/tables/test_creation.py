"""The table of an Object, and the statement that makes it."""

from __future__ import annotations

import pytest

from aaiclick.data import Schema
from aaiclick.data.clients.tables import ALONE, ClusterTables
from aaiclick.data.tables.creation import new_table
from aaiclick.data.tables.storage import PLAINLY, Storage, read_storage
from aaiclick.errors import InputError


@pytest.fixture
def schema() -> Schema:
    return Schema.from_fields({"a": "Int64", "b`": "Date"})


def statement(schema: Schema, name: str = "t", *, granule: int = 0, storage: Storage = PLAINLY) -> str:
    return ALONE._creation(new_table(name, schema, "told", granule=granule, storage=storage))


def test_a_table_is_in_no_order_unless_it_is_said(schema: Schema) -> None:
    text = statement(schema)
    assert text.endswith(
        "ENGINE = MergeTree ORDER BY tuple() SETTINGS non_replicated_deduplication_window = 1000 COMMENT 'told'"
    )
    assert "ORDER BY `aai_id`" in statement(Schema(schema.fields, "table", ordered=True))


def test_names_are_quoted_wherever_they_stand(schema: Schema) -> None:
    text = statement(schema, "t`", storage=read_storage(schema, "ReplacingMergeTree(b`)", ["b`", "a"], "toYYYYMM(b`)"))
    expected = "ENGINE = ReplacingMergeTree(`b\\``) PARTITION BY (toYYYYMM(`b\\``)) ORDER BY (`b\\``, `a`)"
    assert text.startswith("CREATE TABLE `t\\`` ")
    assert expected in text


def test_a_table_that_is_read_in_parts_is_sorted_by_its_first_column(schema: Schema) -> None:
    assert "ORDER BY `a` SETTINGS index_granularity = 128" in statement(schema, granule=128)


def test_rows_that_others_replace_are_refused_on_a_cluster(schema: Schema) -> None:
    storage = read_storage(schema, "ReplacingMergeTree", "a")
    with pytest.raises(InputError, match="on a cluster"):
        ClusterTables("ReplicatedMergeTree", cluster="c").creations(new_table("t", schema, "", storage=storage))
