"""Objects of files and addresses, and rows of these added to an Object."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aaiclick.data import Context, col
from aaiclick.data.clients.local import LocalClient
from aaiclick.data.files.sources import reading_of
from aaiclick.errors import InputError
from tests.data.roads import Web

CSV = "a,b\n1,x\n2,y\n3,z\n"
DOCUMENT = '{"data": {"items": [{"a": 1, "p": 1.10}, {"a": 2, "t": ["q"]}]}}'

START = datetime(2024, 1, 1)  # noqa: DTZ001 (a time without a zone)


async def test_some_rows_and_columns_of_an_address(road: Context, web: Web) -> None:
    web.pages["/r.csv"] = CSV
    url = f"{web.url}/r.csv"
    assert await (await road.create_object_from_url(url, limit=2)).data() == {"a": [1, 2], "b": ["x", "y"]}
    assert await (await road.create_object_from_url(url, columns=["b"], where="a >= 2", limit=1)).data() == {"b": ["y"]}
    made = await road.create_object_from_url(url, where=[col("a") > 1, col("b") < "z"], name="some")
    assert (await made.data(), made.scope) == ({"a": [2], "b": ["y"]}, "global")
    assert await road.delete_object("some")
    given: list[Any] = [{"columns": ["c"]}, {"columns": "a"}, {"columns": []}, {"limit": -1}, {"where": col("c") > 1}]
    for wrong in given:
        with pytest.raises(InputError):
            await road.create_object_from_url(url, **wrong)


async def test_of_a_file_with_types_only_what_is_chosen_is_read(
    road: Context, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({"n": range(1_000), "t": [START + timedelta(days=n) for n in range(1_000)]})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=100)
    web.bodies["/r.parquet"] = sink.getvalue().to_pybytes()
    made: list[str] = []
    make = LocalClient.make

    async def noted(self: Any, sql: str, *given: Any) -> Any:
        made.append(sql)
        return await make(self, sql, *given)

    monkeypatch.setattr(LocalClient, "make", noted)
    for url in (f"{web.url}/r.parquet", f"{web.url}/to/r.parquet"):
        hops = int("/to/" in url)
        found = await road.create_object_from_url(url, where=[col("n") >= 350, "n != 351"], limit=3, redirects=hops)
        days = [START + timedelta(days=n) for n in (350, 352, 353)]
        assert await found.data() == {"n": [350, 352, 353], "t": days}
        assert await (await road.create_object_from_url(url, limit=2, columns=["n"], redirects=hops)).data() == {
            "n": [0, 1]
        }
        late = col("t") > START + timedelta(days=997)
        assert await (await road.create_object_from_url(url, where=late, columns=["n"], redirects=hops)).data() == {
            "n": [998, 999]
        }
        assert await (await road.create_object_from_url(url, limit=0, redirects=hops)).data() == {"n": [], "t": []}
        into = await road.create_object({"n": "Int64"})
        assert await into.insert_from_url(url, columns=["n"], where="n % 500 = 0", redirects=hops) == 2
        with pytest.raises(InputError):
            await road.create_object_from_url(url, where=col("m") > 1, redirects=hops)
    assert all("LIMIT" in sql or "WHERE" in sql for sql in made if "Parquet" in sql)


async def test_rows_that_are_left_out_are_told_beside_a_choice(road: Context, web: Web) -> None:
    web.pages["/r.csv"] = "a,b\n1,x\nno,y\n3,z\n"
    made = await road.create_object_from_url(
        f"{web.url}/r.csv", fields={"a": "Int8", "b": "String"}, on_error="collect", columns=["b"], limit=5
    )
    assert await made.data() == {"b": ["x", "z"]}
    assert made.rejected is not None
    assert await made.rejected["row"].data() == [2]


async def test_a_list_inside_of_a_document(road: Context, web: Web) -> None:
    web.pages["/d.json"] = DOCUMENT
    url = f"{web.url}/d.json"
    read = await road.create_object_from_url(url, json_path="data.items")
    assert await read.data() == {"a": [1, 2], "p": [1.1, None], "t": [[], ["q"]]}
    fields = {"a": "Int8", "p": "Nullable(Decimal(9, 2))"}
    typed = await road.create_object_from_url(url, json_path=["data", "items"], fields=fields)
    assert await typed["p"].data() == [Decimal("1.10"), None]
    with pytest.raises(InputError, match="Leave the format out"):
        await road.create_object_from_url(url, json_path="data.items", format="CSV")


async def test_redirects_are_followed_only_where_that_is_said(road: Context, web: Web) -> None:
    web.pages |= {"/r.csv": CSV, "/d.json": DOCUMENT}
    with pytest.raises(InputError, match=r"redirects elsewhere, and no redirects are followed.*if you trust"):
        await road.create_object_from_url(f"{web.url}/to/r.csv")
    with pytest.raises(InputError, match="1 redirects are followed"):
        await road.create_object_from_url(f"{web.url}/to/to/r.csv", redirects=1)
    assert await (await road.create_object_from_url(f"{web.url}/to/r.csv", redirects=1)).count() == 3
    typed = await road.create_object_from_url(f"{web.url}/to/to/r.csv", redirects=2, fields={"a": "Int8"})
    assert await typed["a"].data() == [1, 2, 3]
    inside = await road.create_object_from_url(f"{web.url}/to/d.json", redirects=1, json_path="data.items")
    assert await inside["a"].data() == [1, 2]
    for wrong in (-1, 21, "1"):
        with pytest.raises(InputError, match="redirects"):
            await road.create_object_from_url(f"{web.url}/r.csv", redirects=wrong)  # type: ignore[arg-type]


async def test_rows_of_an_address_are_read_as_the_types_of_the_object(road: Context, web: Web) -> None:
    web.pages |= {"/r.csv": CSV, "/more.csv": "b,z\nx,1\n", "/d.json": DOCUMENT, "/wrong.csv": "a,b\nq,x\n"}
    into = await road.create_object({"a": "Nullable(Int8)", "b": "String", "c": "Nullable(Int64)"})
    assert await into.insert_from_url(f"{web.url}/r.csv", limit=2) == 2
    assert await into.insert_from_url(f"{web.url}/more.csv", columns=["b"]) == 1
    assert await into.data() == {"a": [1, 2, None], "b": ["x", "y", "x"], "c": [None, None, None]}
    with pytest.raises(InputError, match=r"more\.csv: z .*no such column: it has a, b, c"):
        await into.insert_from_url(f"{web.url}/more.csv")
    with pytest.raises(InputError, match=r"row 1, column a: 'q'"):
        await into.insert_from_url(f"{web.url}/wrong.csv")
    assert await into.insert_from_url(f"{web.url}/wrong.csv", on_error="collect") == 0
    assert into.rejected is not None
    assert await into.rejected.count() == 1
    with pytest.raises(InputError, match="missing: b"):
        await into.insert_from_url(f"{web.url}/d.json", json_path="data.items", columns=["a"])
    lists = await road.create_object({"a": "Int64", "t": "Array(String)", "p": "Nullable(Float64)"})
    assert await lists.insert_from_url(f"{web.url}/d.json", json_path="data.items") == 2
    assert await lists["t"].data() == [[], ["q"]]


async def test_rows_of_a_file_are_inserted(road: Context, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(CSV)
    into = await road.create_object({"a": "Int64", "b": "String"})
    assert await into.insert_from_file(tmp_path / "r.csv") == 3
    assert await into.insert_from_file(str(tmp_path / "r.csv"), where="a > 2") == 1
    assert sorted(await into["a"].data()) == [1, 2, 3, 3]
    with pytest.raises(InputError, match="the Object that receives the rows"):
        await into.insert_from_file(tmp_path / "r.csv", name="other")


def test_an_option_that_is_none_is_named_with_the_one_that_was_meant() -> None:
    with pytest.raises(TypeError, match=r"insert_from_url\(\) has no option 'colums'. Did you mean columns"):
        reading_of("insert_from_url", {"colums": ["a"]})
    with pytest.raises(TypeError, match="redirects"):
        reading_of("create_object_from_file", {"redirects": 1})
