"""What is kept of the output of a command."""

from __future__ import annotations

import pytest

from aaiclick.config import reset_settings
from aaiclick.errors import ValueTooLarge
from aaiclick.executors.outputs import LINE_BYTES_MAX, Output, ResultOf


def kept(wanted: ResultOf, *chunks: bytes) -> object:
    output = Output(wanted)
    for chunk in chunks:
        output.take(chunk)
    return output.result()


def test_the_last_line_is_found_wherever_the_chunks_are_cut() -> None:
    whole = "erste\nzweite größe\r\n".encode()
    for cut in range(len(whole)):
        assert kept("last_line", whole[:cut], whole[cut:]) == "zweite größe"
    assert kept("last_line") == ""
    assert kept("last_line", b"a\n", b"b\n", b"\n", b"\n") == "b"
    assert kept("last_line", b"x" * (2 * LINE_BYTES_MAX)) == "x" * LINE_BYTES_MAX


def test_bytes_that_are_no_text_are_escaped() -> None:
    assert kept("output", b"\xff\n") == "\\xff\n"


def test_too_much_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_BLOB_BYTES_MAX", "1000000")
    monkeypatch.setenv("AAICLICK_VALUE_BYTES_MAX", "1000000")
    reset_settings()
    with pytest.raises(ValueTooLarge, match="1000002"):
        kept("output", b"x" * 1_000_000, b"yy")
    monkeypatch.undo()
    reset_settings()
