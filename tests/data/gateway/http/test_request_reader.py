"""HTTP/1.1 as it comes in."""

from __future__ import annotations

import io
from typing import BinaryIO

import pytest

from aaiclick.data.gateway.http import request_reader
from aaiclick.data.gateway.http.request_reader import BadRequest, Body, BodyBroken, Head, read_head


def head_of(text: bytes) -> Head:
    found = read_head(io.BytesIO(text))
    assert found is not None
    return found


def body_of(text: bytes, **headers: str) -> Body:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Body(io.BytesIO(text), Head("POST", "/", {}, named, "HTTP/1.1"), lambda: None)


def test_a_head_is_read() -> None:
    head = head_of(b"POST /?query=SELECT+1&a=%C3%A9&a=2&empty= HTTP/1.1\r\nHost: x\r\nX-Key:  v:w \r\n\r\nrest")
    assert (head.method, head.path, head.headers) == ("POST", "/", {"host": "x", "x-key": "v:w"})
    assert head.params == {"query": "SELECT 1", "a": "2", "empty": ""}


def test_bytes_that_are_no_text_survive_the_address() -> None:
    (value,) = head_of(b"GET /?query=%FF HTTP/1.1\r\n\r\n").params.values()
    assert value.encode("utf-8", "surrogateescape") == b"\xff"


def test_the_end_of_the_connection_is_no_request() -> None:
    assert read_head(io.BytesIO(b"")) is None


@pytest.mark.parametrize(
    ("line", "keeps"),
    [(b"HTTP/1.1\r\n", True), (b"HTTP/1.1\r\nConnection: close\r\n", False), (b"HTTP/1.0\r\n", False)],
)
def test_whether_the_connection_stays_open(line: bytes, keeps: bool) -> None:
    assert head_of(b"GET / " + line + b"\r\n").keep_alive is keeps


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nname : value\r\n\r\n", 400),
        (b"GET /?" + b"x" * request_reader.URL_BYTES_MAX + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nx: " + b"x" * request_reader.HEADERS_BYTES_MAX + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * request_reader.HEADERS_BYTES_MAX + b"\r\n", 431),
        (b"GET /?" + b"&".join([b"a=1"] * 5000) + b" HTTP/1.1\r\n\r\n", 400),
    ],
)
def test_what_is_no_request_is_refused(text: bytes, status: int) -> None:
    with pytest.raises(BadRequest) as refused:
        read_head(io.BytesIO(text))
    assert refused.value.status == status


def test_a_body_of_known_length_is_read_to_its_end_and_no_further() -> None:
    reader = io.BytesIO(b"abcdefrest")
    body = Body(reader, Head("POST", "/", {}, {"content-length": "6"}, "HTTP/1.1"), lambda: None)
    assert not body.finished
    assert b"".join(body.pieces()) == b"abcdef"
    assert body.finished
    assert reader.read() == b"rest"


def test_a_body_in_chunks_is_read_to_its_end() -> None:
    body = body_of(b"3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n", transfer_encoding="chunked")
    assert b"".join(body.pieces()) == b"abc0123456789"
    assert body.finished


@pytest.mark.parametrize("text", [b"", b"3\r\nab", b"3\r\nabc\r\n", b"3\r\nabcd\r\n", b"3"])
def test_a_body_in_chunks_that_breaks_off_is_noticed(text: bytes) -> None:
    with pytest.raises(BodyBroken):
        list(body_of(text, transfer_encoding="chunked").pieces())


def test_a_body_that_is_shorter_than_was_said_is_noticed() -> None:
    body = body_of(b"abc", content_length="4")
    with pytest.raises(BodyBroken):
        list(body.pieces())
    assert not body.finished


@pytest.mark.parametrize(
    "headers",
    [
        {"content_length": "-1"},
        {"content_length": "x"},
        {"content_length": "3", "transfer_encoding": "chunked"},
        {"transfer_encoding": "gzip"},
    ],
)
def test_a_body_whose_end_cannot_be_told_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(BadRequest):
        body_of(b"abc", **headers)


@pytest.mark.parametrize("size", [b"x", b"-1", b"+1", b"0x3", b"3_0", b"f" * 16, b""])
def test_a_chunk_whose_size_is_no_number_is_refused(size: bytes) -> None:
    with pytest.raises(BadRequest):
        list(body_of(size + b"\r\nabc\r\n", transfer_encoding="chunked").pieces())


def test_who_asks_first_is_invited_once_the_body_is_wanted() -> None:
    invited: list[str] = []
    reader: BinaryIO = io.BytesIO(b"abc")
    headers = {"content-length": "3", "expect": "100-continue"}
    body = Body(reader, Head("POST", "/", {}, headers, "HTTP/1.1"), lambda: invited.append("please"))
    assert not invited
    assert b"".join(body.pieces()) == b"abc"
    assert invited == ["please"]


def test_what_is_left_of_a_body_is_thrown_away_up_to_a_limit() -> None:
    body = body_of(b"x" * (3 * request_reader.PIECE_BYTES), content_length=str(3 * request_reader.PIECE_BYTES))
    body.drain(request_reader.PIECE_BYTES)
    assert not body.finished
    body.drain(3 * request_reader.PIECE_BYTES)
    assert body.finished


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 19 + b"\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + b"".join(b"h%d: x\r\n" % number for number in range(300)) + b"\r\n", 431),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 17 + b"\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1_0\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"t: x\r\n" * 20_000, 431),
    ],
)
def test_numbers_and_headers_are_bounded_before_they_are_read(text: bytes, status: int) -> None:
    def read() -> None:
        reader = io.BytesIO(text)
        head = read_head(reader)
        assert head is not None
        list(Body(reader, head, lambda: None).pieces())

    with pytest.raises(BadRequest) as refused:
        read()
    assert refused.value.status == status
