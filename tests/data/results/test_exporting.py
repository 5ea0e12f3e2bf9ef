"""Files that are written: times in them are with or without a zone, as they were."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from aaiclick.data import Context, Object, create_object, create_object_from_file, create_object_from_value
from aaiclick.errors import InputError

TIME = datetime(2024, 1, 2, 3, 4, 5, 678901)  # noqa: DTZ001
MOMENT = TIME.replace(tzinfo=ZoneInfo("Asia/Kolkata"))
WHOLE = {"b": "DateTime", "z": "DateTime('Asia/Kolkata')"}


@pytest.fixture
async def both(context: Context) -> Object:
    return await create_object_from_value({"n": [TIME, None], "k": [None, MOMENT], "i": [1, 2]})


@pytest.mark.parametrize("ending", ["parquet", "arrow", "orc", "csv", "tsv", "json", "jsonl"])
async def test_times_with_and_without_a_zone_are_read_back(both: Object, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t.{ending}"
    assert await both.export(str(path)) == path.stat().st_size
    found = await (await create_object_from_file(path)).data()
    assert found == {"n": [TIME, None], "k": [None, MOMENT], "i": [1, 2]}
    assert found["n"][0].tzinfo is None
    with pytest.raises(InputError, match="exists already"):
        await both.export(str(path))


async def test_seconds_and_nothing_are_written_too(context: Context, tmp_path: Path) -> None:
    given: dict[str, list[Any]] = {"b": [TIME.replace(microsecond=0)], "z": [MOMENT.replace(microsecond=0)]}
    made = await create_object_from_value(given, fields=WHOLE)
    for ending in ("parquet", "arrow", "csv"):
        await made.export(str(tmp_path / f"t.{ending}"))
        assert await (await create_object_from_file(tmp_path / f"t.{ending}")).data() == given
    await (await create_object({"n": "DateTime64(6)"})).export(str(tmp_path / "none.parquet"))
    assert parquet.read_table(tmp_path / "none.parquet").schema == pa.schema(
        [pa.field("n", pa.timestamp("us"), nullable=False)]
    )


async def test_lists_of_times_are_written_as_they_are(context: Context, tmp_path: Path) -> None:
    made = await create_object_from_value([{"l": [TIME], "m": {"a": MOMENT}}])
    await made.export(str(tmp_path / "t.jsonl"))
    text = '{"l":["2024-01-02 03:04:05.678901"],"m":{"a":"2024-01-01T21:34:05.678901Z"}}\n'
    assert (tmp_path / "t.jsonl").read_text() == text
    await made.export(str(tmp_path / "t.parquet"))
    found = await (await create_object_from_file(tmp_path / "t.parquet")).data("records")
    assert found == [{"l": [TIME], "m": {"a": MOMENT}}]


async def test_what_a_format_cannot_say_is_refused(both: Object, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"column n is .*only holds times with a zone"):
        await both.export(str(tmp_path / "t.avro"))
    assert not (tmp_path / "t.avro").exists()
    moments = both["k"].where("isNotNull(k)")
    await moments.export(str(tmp_path / "t.avro"))
    found = await (await create_object_from_file(tmp_path / "t.avro")).data()
    assert found == {"k": [MOMENT.astimezone(UTC)]}


async def test_half_a_file_is_none(both: Object, tmp_path: Path) -> None:
    wrong = both.with_columns(x=both["n"].cast("Nullable(DateTime64(3))"))
    for ending in ("parquet", "csv"):
        with pytest.raises(ValueError, match="would be changed"):
            await wrong.export(str(tmp_path / f"t.{ending}"))
        assert not (tmp_path / f"t.{ending}").exists()
