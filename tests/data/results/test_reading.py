"""From a query to Python values, files and text: all of it, and in order."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from aaiclick.data import Context, Object, col
from aaiclick.data.clients.contract import Rows
from aaiclick.data.query.row_order import in_order
from aaiclick.data.results.reading import shaped
from aaiclick.errors import DataRefused, InputError

MANY = 1_000_000


@pytest.fixture
async def many(context: Context) -> Object:
    """Three million numbers, in three parts."""
    made = await context.create_object_from_value(range(MANY))
    await made.insert(range(MANY, 2 * MANY), range(2 * MANY, 3 * MANY))
    return made


async def test_many_rows_come_all_and_as_they_were_inserted(context: Context, many: Object) -> None:
    assert await many.data() == list(range(3 * MANY))
    await context.client.command(f"OPTIMIZE TABLE {many.table} FINAL")
    assert await (many.where("value % 2 = 0") + 1).data() == list(range(1, 3 * MANY, 2))
    assert await many.limit(3, 2 * MANY).data() == [2 * MANY, 2 * MANY + 1, 2 * MANY + 2]
    backwards = many.order_by("value", descending=True).where(col("value") % 3 == 0)
    assert await backwards.data() == list(range(3 * MANY - 3, -1, -3))
    assert await (await backwards).data() == list(range(3 * MANY - 3, -1, -3))


async def test_an_ordered_object_keeps_its_order_through_everything(context: Context) -> None:
    made = await context.create_object_from_value(range(MANY), order=True)
    assert await made.data() == list(range(MANY))
    assert await (await (made * 2)).data() == list(range(0, 2 * MANY, 2))


def test_an_answer_takes_its_shape() -> None:
    rows = Rows(["a", "b"], ["Int8", "Int8"], [[1, 2], [3, 4]])
    one = Rows(["a", "b"], ["Int8", "Int8"], [[1], [3]])
    none = Rows(["a", "b"], ["Int8", "Int8"], [[], []])
    assert shaped(rows, "table", None) == {"a": [1, 2], "b": [3, 4]}
    assert shaped(rows, "list", None) == [1, 2]
    assert shaped(rows, "record", "records") == [{"a": 1, "b": 3}, {"a": 2, "b": 4}]
    assert shaped(one, "record", None) == {"a": 1, "b": 3}
    assert (shaped(one, "scalar", None), shaped(none, "scalar", None)) == (1, None)
    with pytest.raises(InputError, match="it holds 2 rows"):
        shaped(rows, "scalar", None)


async def test_only_what_has_an_order_is_put_in_order(context: Context, numbers: Object) -> None:
    ordered = await context.create_object_from_value([1], order=True)
    assert in_order(numbers._relation) is numbers._relation
    assert in_order(ordered._relation).names == ("value",)


async def test_files_are_written_by_their_endings(tmp_path: Path, sales: Object) -> None:
    size = await sales.export(str(tmp_path / "sales.csv"))
    assert size == (tmp_path / "sales.csv").stat().st_size
    lines = (tmp_path / "sales.csv").read_text().splitlines()
    assert [row["price"] for row in csv.DictReader(lines)] == ["1.5", "2", "2.5", "4"]
    await sales.export(str(tmp_path / "sales.jsonl"))
    lines = (tmp_path / "sales.jsonl").read_text().splitlines()
    assert [json.loads(line)["pieces"] for line in lines] == [3, None, 1, 2]
    await (sales["price"] * 2).export(str(tmp_path / "sales.data"), "TSV")
    assert (tmp_path / "sales.data").read_text() == "3\n4\n5\n8\n"


async def test_a_file_that_is_there_stays_as_it_is(tmp_path: Path, sales: Object) -> None:
    path = tmp_path / "sales.csv"
    path.write_text("mine")
    with pytest.raises(InputError, match="the file exists already"):
        await sales.export(str(path))
    assert path.read_text() == "mine"


async def test_half_a_file_is_none(tmp_path: Path, numbers: Object) -> None:
    path = tmp_path / "numbers.csv"
    with pytest.raises(DataRefused):
        await (numbers // 0).export(str(path))
    with pytest.raises(DataRefused):
        await numbers.export(str(path), "NoSuchFormat")
    assert not path.exists()


@pytest.mark.parametrize("name", ["sales", "sales.xyz"])
async def test_an_unknown_ending_is_refused(tmp_path: Path, sales: Object, name: str) -> None:
    with pytest.raises(InputError, match=r"\.parquet, \.csv"):
        await sales.export(str(tmp_path / name))
    with pytest.raises(InputError):
        await sales.export(str(tmp_path / name), "CSV; DROP")
