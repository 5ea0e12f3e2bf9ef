"""HTTP/1.1 as it goes out."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

from aaiclick.data.gateway.http.replies import JOINED_BYTES_MAX, Reply

Sent = Callable[[], bytes]


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, Sent]]:
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)

    def sent() -> bytes:
        ours.close()
        with theirs.makefile("rb") as file:
            return file.read()

    yield ours, sent
    ours.close()
    theirs.close()


def reply_to(ours: socket.socket, version: str = "HTTP/1.1") -> Reply:
    return Reply(ours, keep_alive=True, version=version)


def test_an_answer_of_known_length(ends: tuple[socket.socket, Sent]) -> None:
    ours, sent = ends
    reply_to(ours).send(404, {"X-A": "b"}, [b"ab", b"c"], 3)
    assert sent() == b"HTTP/1.1 404 Not Found\r\nX-A: b\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\nabc"


def test_a_large_answer_of_known_length(ends: tuple[socket.socket, Sent]) -> None:
    ours, sent = ends
    reply_to(ours).send(200, {}, [b"x" * JOINED_BYTES_MAX, b"y"], JOINED_BYTES_MAX + 1)
    assert sent().endswith(b"xy")


def test_an_answer_without_its_body(ends: tuple[socket.socket, Sent]) -> None:
    ours, sent = ends
    reply_to(ours).send(200, {}, [b"abc"], 3, with_body=False)
    assert sent().endswith(b"Content-Length: 3\r\nConnection: keep-alive\r\n\r\n")


def test_an_answer_in_chunks(ends: tuple[socket.socket, Sent]) -> None:
    ours, sent = ends
    reply = reply_to(ours)
    reply.start({})
    for piece in (b"abc", b"", b"0123456789"):
        reply.write(piece)
    reply.end()
    head, _, body = sent().partition(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in head
    assert body == b"3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n"


def test_an_old_client_gets_no_chunks_but_the_end_of_the_connection(ends: tuple[socket.socket, Sent]) -> None:
    ours, sent = ends
    reply = reply_to(ours, "HTTP/1.0")
    reply.start({})
    reply.write(b"abc")
    reply.end()
    assert not reply.keep_alive
    assert sent().endswith(b"Connection: close\r\n\r\nabc")


def test_an_answer_that_fails_midway_has_no_end(ends: tuple[socket.socket, Sent]) -> None:
    ours, sent = ends
    reply = reply_to(ours)
    reply.start({})
    reply.fail_midway(b"why")
    assert not reply.keep_alive
    assert sent().endswith(b"\r\n\r\n3\r\nwhy\r\n")


def test_who_waits_hears_from_time_to_time(ends: tuple[socket.socket, Sent]) -> None:
    ours, sent = ends
    reply = reply_to(ours)
    reply.say_working()
    reply.say_working()
    reply.send(404, {"X-A": "b"}, [], 0)
    reply.say_working()
    lines = sent().split(b"\r\n")
    assert lines[:4] == [b"HTTP/1.1 200 OK", b"X-ClickHouse-Progress: {}", b"X-ClickHouse-Progress: {}", b"X-A: b"]
    assert len([line for line in lines if b"Progress" in line]) == 2
