"""Formats of answers."""

from __future__ import annotations

import pytest

from aaiclick.data.gateway.formats import content_type, joiner


def joined(name: str, *pieces: bytes) -> bytes:
    found = joiner(name)
    assert found is not None
    return b"".join(map(found.add, pieces)) + found.end()


@pytest.mark.parametrize("name", ["Native", "TabSeparated", "tsv", "CSV", "JSONEachRow", "RowBinary"])
def test_rows_without_a_frame_follow_each_other(name: str) -> None:
    assert joined(name, b"1\n", b"2\n", b"") == b"1\n2\n"


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("TSVWithNames", b"a\tb\n"),
        ("TabSeparatedWithNamesAndTypes", b"a\nUInt8\n"),
        ("CSVWithNames", b'"a\n""b"""\n'),
        ("CSVWithNamesAndTypes", b'"a"\n"UInt8"\n'),
        ("JSONCompactEachRowWithNamesAndTypes", b'["a"]\n["UInt8"]\n'),
    ],
)
def test_names_and_types_are_told_once(name: str, head: bytes) -> None:
    assert joined(name, head + b"1\n", head + b"2\n", b"") == head + b"1\n2\n"
    assert joined(name, head) == head


@pytest.mark.parametrize("name", ["JSON", "Parquet", "Arrow", "Pretty", "Values", "XML", "nonsense"])
def test_a_format_with_a_frame_is_answered_whole(name: str) -> None:
    assert joiner(name) is None


def test_a_stream_of_arrow_has_one_schema_and_one_end() -> None:
    end, schema = b"\xff\xff\xff\xff\0\0\0\0", b"\xff\xff\xff\xff\x08\0\0\0schema!!"
    assert joined("ArrowStream", schema + b"one" + end, schema + b"two" + end, b"") == schema + b"onetwo" + end
    assert joined("ArrowStream") == b""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("JSON", "application/json; charset=UTF-8"),
        ("JSONEachRow", "application/x-ndjson; charset=UTF-8"),
        ("CSVWithNames", "text/csv; charset=UTF-8; header=present"),
        ("TSV", "text/tab-separated-values; charset=UTF-8"),
        ("Native", "application/octet-stream"),
        ("Pretty", "text/plain; charset=UTF-8"),
    ],
)
def test_the_content_type_of_a_format(name: str, kind: str) -> None:
    assert content_type(name) == kind
