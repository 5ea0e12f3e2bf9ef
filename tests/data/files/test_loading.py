"""Files read into given fields: exactly, or as `on_error` says; awkward ones above all."""

from __future__ import annotations

import gzip
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aaiclick.data import Context, create_object_from_file
from aaiclick.data.objects import Object
from aaiclick.errors import InputError
from aaiclick.telemetry import masks

FIELDS = {"a": "Int8", "b": "Nullable(String)", "d": "Nullable(Date)"}
MIXED = b'a,b,d\n1,x,2024-01-01\n300,"y\nz",2024-02-30\n2\n3,4,2024-01-01,6\n7,,\n"8",\\N,2024-05-05\n1x,\xff,\n'


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def written(name: str, data: bytes) -> Path:
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    return written


async def records(found: Object | None) -> list[dict[str, Any]]:
    assert found is not None
    return list(await found.data(orient="records"))


async def test_the_first_value_that_cannot_be_read_is_named(context: Context, write: Any) -> None:
    asked = "SELECT name FROM system.tables WHERE database = currentDatabase() ORDER BY name"
    before = (await context.client.rows(asked)).columns
    with pytest.raises(InputError, match=r"mixed\.csv, row 2, column a: '300' .*not a valid Int8"):
        await create_object_from_file(write("mixed.csv", MIXED), fields=FIELDS, name="never")
    assert (await context.client.rows(asked)).columns == before


async def test_rows_that_cannot_be_read_are_left_out_or_collected(context: Context, write: Any) -> None:
    right = [
        {"a": 1, "b": "x", "d": date(2024, 1, 1)},
        {"a": 7, "b": "", "d": None},
        {"a": 8, "b": None, "d": date(2024, 5, 5)},
    ]
    skipped = await create_object_from_file(write("mixed.csv", MIXED), fields=FIELDS, on_error="skip")
    assert await records(skipped) == right
    assert skipped.rejected is None
    made = await create_object_from_file(write("mixed.csv", MIXED), fields=FIELDS, on_error="collect")
    assert await records(made) == right
    assert [(each["row"], each["column"], each["value"], each["reason"]) for each in await records(made.rejected)] == [
        (2, "a", "300", "it is not a valid Int8"),
        (3, "", None, "the row has too few columns"),
        (4, "", None, "the row has too many columns"),
        (7, "a", "1x", "it is not a valid Int8"),
    ]
    assert (await records(made.rejected))[0]["cells"] == ["300", "y\nz", "2024-02-30"]


async def test_a_rejected_row_tells_an_empty_cell_from_a_text(context: Context, write: Any) -> None:
    fields = {"a": "Int8", "b": "Nullable(Int8)", "c": "String"}
    for path in (write("e.csv", b"a,b,c\nx,,NULL\n"), write("e.jsonl", b'{"a": "x", "b": null, "c": "NULL"}\n')):
        made = await create_object_from_file(path, fields=fields, on_error="collect")
        assert (await records(made.rejected))[0]["cells"] == ["x", None, "NULL"]


async def test_a_row_of_another_length_is_named(context: Context, write: Any) -> None:
    with pytest.raises(InputError, match=r"long\.csv, row 1: it is not accepted: the row has too many columns"):
        await create_object_from_file(write("long.csv", b"a\n1,2\n"), fields={"a": "Int8"})


async def test_values_that_cannot_be_read_become_null_where_that_is_allowed(context: Context, write: Any) -> None:
    path = write("some.csv", b"a,b\n1,2024-02-30\nx,2024-02-29\n,\n")
    made = await create_object_from_file(path, fields={"a": "Nullable(Int8)", "b": "Nullable(Date)"}, on_error="null")
    assert await made.data() == {"a": [1, None, None], "b": [None, date(2024, 2, 29), None]}
    with pytest.raises(InputError, match="row 2, column a"):
        await create_object_from_file(path, fields={"a": "Int8", "b": "Nullable(Date)"}, on_error="null")


@pytest.mark.parametrize(
    ("data", "options", "expected"),
    [
        pytest.param(b"\xef\xbb\xbfa,b\r\n1,x\r\n2,y", {}, [(1, "x"), (2, "y")], id="BOM, CRLF, no last line end"),
        pytest.param(b'a,b\n1,"x\r\n""y"""\n', {}, [(1, 'x\r\n"y"')], id="quoted line ends and quotes"),
        pytest.param(b"a,b\n", {}, [], id="header alone"),
        pytest.param(b"1,x\n2,y\n", {"header": False}, [(1, "x"), (2, "y")], id="no header"),
        pytest.param(b"", {"header": False}, [], id="nothing"),
        pytest.param(b"b;z;a\nx;0;1\n", {"delimiter": ";"}, [(1, "x")], id="another order, and more columns"),
        pytest.param(b"a,b\n1,\xe9\n", {"encoding": "latin-1"}, [(1, "é")], id="latin-1"),
        pytest.param(b"a,b\n1,\x00x\n", {}, [(1, "\0x")], id="NUL"),
        pytest.param(b"a,b\n1," + b"x" * 2_000_000 + b"\n", {}, [(1, "x" * 2_000_000)], id="a long line"),
        pytest.param(b"made by hand\n\na,b\n1,x\n", {"skip_rows": 2}, [(1, "x")], id="lines before the header"),
        pytest.param(b"a,b\n1,no\n2, x \n", {"null": "no"}, [(1, None), (2, " x ")], id="another NULL, and blanks"),
        pytest.param(b"a,b\n1,x\n\n\n", {}, [(1, "x")], id="empty lines at the end"),
    ],
)
async def test_awkward_files(
    context: Context, write: Any, data: bytes, options: dict[str, Any], expected: list[tuple[Any, ...]]
) -> None:
    path = write("awkward.csv", data)
    made = await create_object_from_file(path, fields={"a": "Int64", "b": "Nullable(String)"}, options=options)
    assert [tuple(each.values()) for each in await records(made)] == expected


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (b"", "file is empty"),
        (b"a,a,b\n1,2,3\n", "2 columns of that name"),
        (b"a,c\n1,2\n", "its columns are a, c"),
        (b"a,b\n1,\xff\n", "row 1, column b"),
        (b"a,b\n1,x\n\n2,y\n", "row 2.*too few"),
        (b"a,b\n,x\n", "row 1, column a.*not Nullable"),
        (b'a,b\n1,"x\n2,y\n', "not closed"),
        (b'a,b\n1,"x"z\n2,y\n', "cannot read it"),
        ("a,b\n1,x\n".encode("utf-16"), "its columns are"),
    ],
)
async def test_files_that_are_refused(context: Context, write: Any, data: bytes, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        await create_object_from_file(write("x.csv", data), fields={"a": "Int64", "b": "String"})


async def test_other_formats(context: Context, write: Any, tmp_path: Path) -> None:
    fields = {"a": "Int8", "t": "Nullable(Decimal(30, 20))"}
    digits = "1.23456789012345678901"
    rows = [{"a": 1, "t": Decimal(digits[:22])}, {"a": 2, "t": None}]
    for end in ("\n", "\r\n"):
        text = f"a\tt{end}1\t{digits[:22]}{end}2\t\\N{end}"
        assert await records(await create_object_from_file(write("x.tsv", text.encode()), fields=fields)) == rows
    escaped = write("e.tsv", b"a\tb\n1\tx\\ty\\\\n\n2\n")
    told = await create_object_from_file(escaped, fields={"a": "Int8", "b": "String"}, on_error="collect")
    assert await told.data() == {"a": [1], "b": ["x\ty\\n"]}
    document = write("x.json", b'{"meta":[{"name":"a","type":"Int64"}],"data":[{"a":1}]}')
    assert await records(await create_object_from_file(document, fields={"a": "Int8"})) == [{"a": 1}]
    lines = f'{{"a":1,"t":{digits[:22]},"more":[1]}}\n{{"a":"2"}}\n'
    json = await create_object_from_file(write("x.jsonl", lines.encode()), fields=fields)
    assert await records(json) == rows
    packed = await create_object_from_file(write("x.jsonl.gz", gzip.compress(lines.encode())), fields=fields)
    assert await records(packed) == rows
    named = write("noending", gzip.compress(b"1,2\n"))
    told = await create_object_from_file(
        named, fields={"x": "Int8", "y": "Int8"}, format="CSV", options={"compression": "gz"}
    )
    assert await records(told) == [{"x": 1, "y": 2}]
    with pytest.raises(InputError, match=r"bad\.jsonl.*JSONEachRow"):
        await create_object_from_file(write("bad.jsonl", b'{"a":1}\n{"a":\n'), fields=fields, on_error="skip")


async def test_columns_with_types_of_their_own_are_changed_only_where_nothing_is_lost(
    context: Context, tmp_path: Path
) -> None:
    stamp = pa.array([1_700_000_000_123_456, None], pa.timestamp("us", "UTC"))
    table = pa.table({"n": [1, 300], "s": ["7", "x"], "f": [1.0, 1.5], "m": stamp, "l": [[1], [2]]})
    pq.write_table(table, tmp_path / "x.parquet")
    fields = {"n": "Int64", "s": "String", "f": "Float64", "l": "Array(Nullable(Int64))"}
    fields["m"] = "Nullable(DateTime64(6, 'UTC'))"
    made = await create_object_from_file(tmp_path / "x.parquet", fields=fields)
    assert (await made.data())["l"] == [[1], [2]]
    for changed in ({"n": "Int8"}, {"s": "Int8"}, {"f": "Int64"}, {"m": "Nullable(DateTime64(3, 'UTC'))"}):
        made = await create_object_from_file(tmp_path / "x.parquet", fields=fields | changed, on_error="collect")
        assert made.rejected is not None
        assert await made.rejected.count() == 1
    with pytest.raises(InputError, match="not changed into another type"):
        await create_object_from_file(tmp_path / "x.parquet", fields={"l": "Array(Int8)"})


async def test_a_secret_in_a_file_is_not_told(context: Context, write: Any) -> None:
    masks.remember(["the-canary-of-the-file"])
    try:
        with pytest.raises(InputError) as refused:
            await create_object_from_file(write("x.csv", b"a\nthe-canary-of-the-file\n"), fields={"a": "Int8"})
        assert "canary" not in str(refused.value)
    finally:
        masks.forget_all()
