"""Files with types of their own, and what their times are."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest

from aaiclick.data import Context, create_object_from_file
from aaiclick.errors import InputError

TIME = datetime(2024, 1, 2, 3, 4, 5, 678901)  # noqa: DTZ001
BOTH = pa.struct([("n", pa.timestamp("us")), ("u.v", pa.timestamp("us", "UTC"))])
COLUMNS = pa.table(
    {
        "n": pa.array([TIME], pa.timestamp("us")),
        "u": pa.array([TIME], pa.timestamp("us", "UTC")),
        "list": pa.array([[TIME]], pa.list_(pa.timestamp("us"))),
        "map": pa.array([[("a", TIME)]], pa.map_(pa.string(), pa.timestamp("us"))),
        "struct": pa.array([{"n": TIME, "u.v": TIME}], BOTH),
        "o.d": pa.array([1]),
    }
)


async def test_parquet_keeps_times_with_and_without_a_zone_apart(context: Context, tmp_path: Path) -> None:
    parquet.write_table(COLUMNS, tmp_path / "t.parquet")
    made = await create_object_from_file(tmp_path / "t.parquet")
    (found,) = await made.data("records")
    moment = TIME.replace(tzinfo=UTC)
    assert found == {
        "n": TIME,
        "u": moment,
        "list": [TIME],
        "map": {"a": TIME},
        "struct": {"n": TIME, "u.v": moment},
        "o.d": 1,
    }
    assert (await made.arrow()).schema.field("struct").type.field(0).type == pa.timestamp("us")


async def test_old_times_of_parquet_that_do_not_tell_have_no_zone(context: Context, tmp_path: Path) -> None:
    parquet.write_table(COLUMNS.select(["n", "u"]), tmp_path / "t.parquet", use_deprecated_int96_timestamps=True)
    assert await (await create_object_from_file(tmp_path / "t.parquet")).data("records") == [{"n": TIME, "u": TIME}]


async def test_fields_do_not_change_whether_times_have_a_zone(context: Context, tmp_path: Path) -> None:
    parquet.write_table(COLUMNS.select(["n", "u"]), tmp_path / "t.parquet")
    right = {"n": "DateTime64(6)", "u": "DateTime64(6, 'Europe/Rome')"}
    made = await create_object_from_file(tmp_path / "t.parquet", fields=right)
    assert await made.data("records") == [{"n": TIME, "u": TIME.replace(tzinfo=UTC)}]
    for wrong in ({"n": "DateTime64(6, 'UTC')"}, {"u": "DateTime64(6)"}):
        with pytest.raises(InputError, match=r"these cannot be combined.*tz_localize"):
            await create_object_from_file(tmp_path / "t.parquet", fields=wrong)
    with pytest.raises(InputError, match="row 1, column n"):
        await create_object_from_file(tmp_path / "t.parquet", fields={"n": "DateTime64(3)"})


async def test_a_difference_to_utc_is_no_zone_and_odd_days_are_refused(context: Context, tmp_path: Path) -> None:
    path = str(tmp_path / "t.arrow")
    given = pa.table({"t": pa.array([TIME], pa.timestamp("us", "+05:30"))})
    feather.write_feather(given, path, compression="uncompressed")
    made = await create_object_from_file(path)
    assert made.schema.types == {"t": "Nullable(DateTime64(6, 'UTC'))"}
    assert await made.data() == {"t": [TIME.replace(tzinfo=UTC)]}
    days = pa.table({"d": pa.array([date(1950, 1, 1)], pa.date64())})
    feather.write_feather(days, path, compression="uncompressed")
    with pytest.raises(InputError, match="column d is a date64"):
        await create_object_from_file(path)


async def test_what_is_no_parquet_is_refused(context: Context, tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_text("no")
    with pytest.raises(InputError, match=r"t\.parquet is not accepted: ClickHouse cannot read it as Parquet"):
        await create_object_from_file(tmp_path / "t.parquet")
