"""Objects from files and addresses, and back into files."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from datetime import datetime
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from aaiclick.data import create_object_from_file, create_object_from_url, create_object_from_value, data_context
from aaiclick.data.files.file_reader import file_source, format_here, format_of, url_source
from aaiclick.errors import InputError
from tests.support.front_door import local

__all__ = ["local"]

ROWS: dict[str, list[Any]] = {"a": [1, 2, 3], "b": ["x", "it's", None]}


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv", "jsonl", "arrow", "orc", "avro"])
async def test_what_is_written_is_read_back(local: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rows.{ending}"
    async with data_context() as context:
        made = await create_object_from_value(ROWS)
        assert await made.export(str(path)) == path.stat().st_size
        read = await create_object_from_file(path)
        assert await read.data() == ROWS
        if ending not in ("tsv", "avro"):
            context.reads_files = False  # as if the engine was elsewhere
            assert await (await create_object_from_file(path)).count() == 3


async def test_a_file_is_read_here_as_the_engine_reads_it(local: Path, tmp_path: Path) -> None:
    lines = '{"a": 1, "t": "2024-01-02 03:04:05", "o": {"x": [1, 2]}, "n": null}\n\n{"a": 2.5, "o": {"x": []}}\n'
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,t\n1,2024-01-02 03:04:05\n2.5,\n"))
    time = datetime(2024, 1, 2, 3, 4, 5)  # noqa: DTZ001
    async with data_context() as context:
        for context.reads_files in (True, False):
            read = await create_object_from_file(tmp_path / "t.jsonl.gz")
            found = {"a": [1.0, 2.5], "t": [time, None], "o": [{"x": [1, 2]}, {"x": []}], "n": [None, None]}
            assert await read.data() == found
            assert await (await create_object_from_file(tmp_path / "t.csv.gz")).data() == {
                "a": [1.0, 2.5],
                "t": [time, None],
            }


@pytest.mark.parametrize(
    ("name", "data", "refused"),
    [
        ("a.jsonl", '{"a": 1}\n{"a": ', "line 2"),
        ("a.jsonl", "[1]\n", "line 1 is not an object"),
        ("a.jsonl", '{"a": 1e400}\n', "1e400 is not a number, or is too large"),
        ("a.jsonl", '{"a": NaN}\n', "NaN is not a number"),
        ("a.jsonl", '{"a": [1, "x"]}\n', "column a"),
        ("a.csv", "a,b\n1\n", "Expected 2 columns"),
        ("a.csv", "", "Empty CSV file"),
    ],
)
async def test_a_file_that_cannot_be_read_here_is_refused(
    local: Path, tmp_path: Path, name: str, data: str, refused: str
) -> None:
    (tmp_path / name).write_text(data)
    async with data_context() as context:
        context.reads_files = False
        with pytest.raises(InputError, match=rf"file: {name} is not accepted: it cannot be read: .*{refused}"):
            await create_object_from_file(tmp_path / name)


async def test_a_file_is_never_overwritten(local: Path, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("mine")
    async with data_context():
        with pytest.raises(InputError, match="exists already"):
            await (await create_object_from_value([1])).export(str(path))
    assert path.read_text() == "mine"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "rows.csv").write_text("a,b\n1,x\n2,y\n")

    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, directory=str(tmp_path), **more)

        def log_message(self, *given: Any) -> None:
            """Nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{listening.server_address[1]}"
    listening.shutdown()
    listening.server_close()


async def test_an_address_is_read_by_clickhouse(local: Path, server: str) -> None:
    async with data_context():
        read = await create_object_from_url(f"{server}/rows.csv")
        assert await read.data() == {"a": [1, 2], "b": ["x", "y"]}
        typed = await create_object_from_url(f"{server}/rows.csv", fields={"b": "String", "a": "Int8"})
        assert (typed.schema.types, await typed.data()) == (
            {"b": "String", "a": "Int8"},
            {"b": ["x", "y"], "a": [1, 2]},
        )
        with pytest.raises(InputError, match=r"rows\.csv, row 1, column b: 'x'"):
            await create_object_from_url(f"{server}/rows.csv", fields={"b": "Int8"})


async def test_a_name_that_is_a_pattern_is_not_followed(local: Path, tmp_path: Path) -> None:
    (tmp_path / "a*.csv").write_text("a\n1\n")
    (tmp_path / "ab.csv").write_text("a\n2\n")
    async with data_context():
        with pytest.raises(InputError, match="pattern"):
            await create_object_from_file(tmp_path / "a*.csv")


@pytest.mark.parametrize("name", ["a.parquet", "A.PARQUET", "a.parquet.gz", "dir.csv/a.parquet"])
def test_the_format_is_told_by_the_ending(name: str) -> None:
    assert format_of(name, None) == "Parquet"


@pytest.mark.parametrize(
    ("name", "given"), [("a", None), ("a.xyz", None), ("a.csv", "CSV) UNION ALL SELECT 1"), ("a", "")]
)
def test_a_format_that_is_not_known_is_refused(name: str, given: str | None) -> None:
    with pytest.raises(InputError, match="ending"):
        format_of(name, given)


def test_names_of_files_and_addresses_are_quoted(tmp_path: Path) -> None:
    odd = tmp_path / "it's.csv"
    odd.write_text("a\n1\n")
    assert "it\\'s.csv" in file_source(odd, None).table()
    assert "\\'" in url_source("http://host/it's.csv", None).table()
    for wrong in ("ftp://host/a.csv", "file:///etc/passwd", "host/a.csv", "http:///a.csv"):
        with pytest.raises(InputError, match="http"):
            url_source(wrong, None)


def test_a_file_for_a_server_is_of_a_format_that_can_be_sent(tmp_path: Path) -> None:
    path = tmp_path / "rows.xml"
    path.write_text("<a/>")
    with pytest.raises(InputError, match="Parquet"):
        format_here(path, None)
