"""Packed files."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from aaiclick.data import Context, create_object_from_file
from aaiclick.data.clients.packing import PACKINGS, ending_of, packed, read_packing
from aaiclick.errors import DataRefused, InputError

ROWS = {"a": [1, 2, 3], "b": ["x", "ü", None]}
UNPACKED: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.decompress, "bz2": bz2.decompress, "xz": lzma.decompress}


@pytest.mark.parametrize("packing", PACKINGS)
async def test_a_packed_file_is_read_back(context: Context, tmp_path: Path, packing: str) -> None:
    made = await context.create_object_from_value(ROWS)
    for ending in ("csv", "jsonl", "tsv"):
        path = tmp_path / f"rows.{ending}.{packing}"
        assert await made.export(path) == path.stat().st_size
        if packing != "bz2":  # which ClickHouse does not read everywhere
            assert await (await create_object_from_file(path)).data() == ROWS
    if packing in UNPACKED:
        assert UNPACKED[packing]((tmp_path / f"rows.csv.{packing}").read_bytes()).startswith(b'"a","b"\n1,"x"\n')


async def test_the_packing_may_be_given(context: Context, tmp_path: Path) -> None:
    made = await context.create_object_from_value(ROWS)
    await made.export(tmp_path / "rows.csv", compression="gz")
    assert gzip.decompress((tmp_path / "rows.csv").read_bytes()).startswith(b'"a","b"')
    read = await create_object_from_file(tmp_path / "rows.csv", options={"compression": "gz"})
    assert await read.data() == ROWS


@pytest.mark.parametrize("codec", ["zst", "gz", "snappy", "lz4", "brotli", "none"])
async def test_columns_of_parquet_have_a_codec(context: Context, tmp_path: Path, codec: str) -> None:
    made = await context.create_object_from_value(ROWS)
    local = await context.create_object({"a": "Nullable(DateTime)"})  # such times are written by Arrow
    await local.insert({"a": [None]})
    for name, rows in (("rows", made), ("local", local)):
        path = tmp_path / f"{name}.parquet"
        await rows.export(path, compression=codec)
        told = parquet.ParquetFile(path).metadata.row_group(0).column(0).compression
        assert told == {"zst": "ZSTD", "gz": "GZIP", "none": "UNCOMPRESSED"}.get(codec, codec.upper())
        assert await (await create_object_from_file(path)).data() == await rows.data()


@pytest.mark.parametrize(
    ("path", "given", "told"),
    [
        ("a.csv", "gzip", "Did you mean gz"),
        ("a.csv", "snappy", "one of gz"),
        ("a.parquet", "xz", "one of none, snappy"),
        ("a.csv.gz", "zst", "the ending of the path says gz"),
        ("a.csv.gz", "none", "the ending of the path says gz"),
        ("a.csv", 5, "one of gz"),
    ],
)
async def test_what_is_no_packing_is_refused(
    context: Context, tmp_path: Path, path: str, given: str, told: str
) -> None:
    made = await context.create_object_from_value(ROWS)
    with pytest.raises(InputError, match=told):
        await made.export(tmp_path / path, compression=given)
    assert not (tmp_path / path).exists()


async def test_half_a_file_is_none(context: Context, tmp_path: Path) -> None:
    failing = (await context.create_object_from_value(ROWS)).where("throwIf(a = 3) = 0")
    for name in ("a.csv.gz", "a.csv.zst", "a.csv"):
        with pytest.raises(DataRefused):
            await failing.export(tmp_path / name)
        assert not (tmp_path / name).exists()


def test_the_ending_tells_the_format_and_the_packing() -> None:
    assert ending_of("Rows.CSV.GZ") == (".csv", "gz")
    assert ending_of("rows.gz.csv") == (".csv", "")
    assert read_packing("a.parquet.gz", "Parquet", "zst") == ("gz", "zstd")
    assert read_packing("a.csv", "CSV", None) == ("", "")


def test_a_packed_file_stays_open(tmp_path: Path) -> None:
    for packing in ("", *PACKINGS):
        with open(tmp_path / "x", "wb") as file:
            with packed(file, packing) as into:
                into.write(b"x")
            assert file.tell() > 0
