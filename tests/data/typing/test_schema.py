"""Schemas: checked when made, written into ClickHouse, and read back from there."""

import json

import pytest

from aaiclick.data.typing.schema import Field, Schema, Shape, read_schema
from aaiclick.errors import InputError


def test_a_schema_is_made_of_names_and_types() -> None:
    schema = Schema.from_fields({"a": int, "b c": "nullable(string)"})
    assert schema.names == ["a", "b c"]
    assert schema.types == {"a": "Int64", "b c": "Nullable(String)"}
    assert schema["b c"] == Field("b c", "Nullable(String)")
    assert "a" in schema
    assert len(schema) == 2
    assert str(schema) == repr(schema) == "Schema(table: a: Int64, b c: Nullable(String))"
    with pytest.raises(KeyError):
        schema["d"]


def test_a_schema_is_made_of_pairs_and_fields_too() -> None:
    assert Schema.from_fields([("a", int), Field("b", "string", "seen")]).fields[1] == Field("b", "String", "seen")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "no column"),
        ({"": "Int8"}, "empty"),
        ({"a\n": "Int8"}, "control"),
        ({5: "Int8"}, "must be a text"),
        ([("a", "Int8"), ("a", "Int16")], "two columns"),
        ({"aai_id": "UInt64"}, "reserved"),
        ({"a": "Int7"}, "type of column a"),
        ([("a",)], "a name and a type"),
        ([5], "a name and a type"),
        ({f"c{i}": "Int8" for i in range(10_001)}, "more than 10000"),
    ],
)
def test_a_bad_schema_is_refused(given, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Schema.from_fields(given)


def test_a_bad_shape_is_refused() -> None:
    with pytest.raises(InputError, match="a shape must be one of"):
        Schema.from_fields({"a": int}, "cube")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="called value"):
        Schema.from_fields({"a": int}, "list")


def test_the_definitions_of_columns_are_quoted() -> None:
    schema = Schema.from_fields([("a`b", int), Field("c", "String", "it's")], "record", ordered=True)
    assert schema.column_definitions() == (
        "aai_id UInt64 DEFAULT generateSnowflakeID(), "
        """`a\\`b` Int64 COMMENT '{"fieldtype": "s"}', """
        """`c` String COMMENT '{"fieldtype": "s", "comment": "it\\'s"}'"""
    )


def test_no_unread_type_reaches_a_statement() -> None:
    schema = Schema((Field("a", "Int8) ENGINE = URL('http://x'"),), "table")
    with pytest.raises(InputError):
        schema.column_definitions()


def rows_of(schema: Schema) -> list[tuple[str, str, str]]:
    letter = "s" if schema.shape in ("scalar", "record") else "a"
    rows = [(field.name, field.type, json.dumps({"fieldtype": letter})) for field in schema.fields]
    return [("aai_id", "UInt64", ""), *rows] if schema.ordered else rows


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("shape", ["scalar", "list", "record", "table"])
@pytest.mark.parametrize("with_comment", [True, False])
def test_a_schema_is_read_back(shape: Shape, ordered: bool, with_comment: bool) -> None:
    names = ["value"] if shape in ("scalar", "list") else ["a", "b"]
    schema = Schema.from_fields(dict.fromkeys(names, int), shape, ordered)
    comment = schema.table_comment(job_id=7) if with_comment else ""
    assert read_schema(rows_of(schema), comment) == schema


def test_the_comment_of_a_table_holds_facts() -> None:
    facts = json.loads(Schema.from_fields({"a": int}).table_comment(job_id=7))
    assert facts == {"aaiclick": 1, "shape": "table", "ordered": False, "job_id": 7}


@pytest.mark.parametrize(
    "comment", ["", "a table", "{", "[]", '{"aaiclick": 9, "shape": "scalar"}', '{"aaiclick": 1}', "[" * 9999]
)
def test_a_table_that_is_not_ours_is_a_table(comment: str) -> None:
    found = read_schema([("value", "JSON", "his"), ("b", "Decimal(9,2)", "")], comment)
    assert found.shape == "table"
    assert found.fields == (Field("value", "JSON", "his"), Field("b", "Decimal(9, 2)"))
