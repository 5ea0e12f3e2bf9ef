"""Where a request ends. Tried on a connection in test_connections.py."""

from __future__ import annotations

import pytest

from aaiclick.server.transport.request_framing import wrong_in, wrong_so_far


@pytest.mark.parametrize(
    "lines",
    [
        b"",
        b"\r\nContent-Length: 0",
        b"\r\ncontent-length:12 ",
        b"\r\nTransfer-Encoding: Chunked",
        b"\r\nContent-Length-Hint: 4\r\nContent-Length: 3",
        b"\r\nX: \xff\xfe\tcaf\xc3\xa9",
    ],
)
def test_what_means_one_thing(lines: bytes) -> None:
    assert wrong_in(b"POST /a?b HTTP/1.1" + lines) == ""


def test_old_requests_have_no_pieces() -> None:
    assert wrong_in(b"GET / HTTP/1.0") == ""
    assert "chunked" in wrong_in(b"GET / HTTP/1.0\r\nTransfer-Encoding: chunked")


@pytest.mark.parametrize(
    ("head", "begin", "wrong"), [(b"a\r\nb\r", 0, False), (b"a\r\n", 2, False), (b"ab\nc", 1, True)]
)
def test_lf_alone_is_seen_at_once(head: bytes, begin: int, wrong: bool) -> None:
    assert bool(wrong_so_far(bytearray(head), begin)) is wrong
