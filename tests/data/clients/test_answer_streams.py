"""Answers that break off: what stands at their end is found, wherever reads divide it."""

from __future__ import annotations

from http.client import IncompleteRead
from typing import Any

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError
from urllib3.exceptions import ProtocolError

from aaiclick.data.clients.answer_streams import TAIL_BYTES, AnswerStream, with_errors_in_streams

TAG = "ghijklmnop"
TOLD = "Code: 395. DB::Exception: mine"
END = f"\r\n__exception__\r\n{TAG}\r\n{TOLD}\n{len(TOLD)} {TAG}\r\n__exception__\r\n".encode()


class Response:
    """Gives these bytes, and then breaks off as urllib3 does."""

    def __init__(self, data: bytes, tag: str = TAG) -> None:
        self.data, self.closed = data, False
        self.headers = {"X-ClickHouse-Exception-Tag": tag}

    def read(self, size: int | None) -> bytes:
        if size is None or size > len(self.data):
            raise ProtocolError("Connection broken") from IncompleteRead(self.data)
        piece, self.data = self.data[:size], self.data[size:]
        return piece

    def close(self) -> None:
        self.closed = True


def read_all(stream: AnswerStream, size: int) -> bytes:
    found = b""
    while piece := stream.read(size):
        found += piece
    return found


@pytest.mark.parametrize("rows", [0, 1, 100, TAIL_BYTES])
@pytest.mark.parametrize("size", [1, 7, 50, 10**6])
def test_the_error_at_the_end_is_raised(rows: int, size: int) -> None:
    if rows == TAIL_BYTES and size == 1:
        size = 4_096
    with pytest.raises(DatabaseError, match=r"Code: 395.*mine"):
        read_all(AnswerStream(Response(b"x" * rows + END)), size)


@pytest.mark.parametrize("data", [b"", b"rows", END.replace(TAG.encode(), b"of_others"), END[:-30]])
def test_without_an_error_of_clickhouse_it_is_that_of_the_network(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_all(AnswerStream(Response(data)), 3)
    with pytest.raises(ProtocolError):
        AnswerStream(Response(END, tag="")).read()


def test_a_client_gives_such_streams_and_closes_them() -> None:
    class Client:
        def raw_stream(self, sql: str, fmt: str = "") -> Response:
            return Response(f"{sql} {fmt}".encode())

    client: Any = with_errors_in_streams(Client())  # type: ignore[arg-type]
    stream = client.raw_stream("a", fmt="CSV")
    assert stream.read(5) == b"a CSV"
    stream.close()
    assert stream._response.closed
