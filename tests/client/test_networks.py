"""Connections by blocking sockets and on an event loop: one suite for both."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from aaiclick.client.networks import BlockingNetwork, LoopNetwork, Network, NoConnection, Wire, finished, iterated
from aaiclick.client.tls import secured
from aaiclick.server_address import Address

Run = Callable[[Coroutine[Any, Any, Any]], Any]
KINDS: list[tuple[Callable[[], Network], Run]] = [(BlockingNetwork, finished), (LoopNetwork, asyncio.run)]
each_network = pytest.mark.parametrize(("network", "run"), KINDS, ids=["blocking", "loop"])


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield found


def address_of(listening: socket.socket, scheme: str = "http") -> Address:
    return Address.of(f"{scheme}://127.0.0.1:{listening.getsockname()[1]}")


def serve(listening: socket.socket, told: bytes) -> threading.Thread:
    """Read a line, say something, and close."""

    def work() -> None:
        other, _ = listening.accept()
        with other:
            other.recv(100)
            other.sendall(told)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@each_network
def test_what_is_sent_is_answered(listening: socket.socket, network: Callable[[], Network], run: Run) -> None:
    thread = serve(listening, b"first\nrest")

    async def work() -> tuple[bytes, ...]:
        wire = await network().connect(address_of(listening), None, 5)
        assert not wire.is_stale()
        await wire.write(b"hello\n")
        found = await wire.readline(), await wire.read(2), await whole(wire)
        await wire.read(1)
        assert wire.is_stale()
        wire.close()
        return found

    assert run(work()) == (b"first\n", b"re", b"st")
    thread.join()


async def whole(wire: Wire) -> bytes:
    found = b""
    while data := await wire.read(100):
        found += data
    return found


@each_network
def test_silence_is_an_error_in_the_end(listening: socket.socket, network: Callable[[], Network], run: Run) -> None:
    async def work() -> None:
        wire = await network().connect(address_of(listening), None, 5)
        wire.timeout_s = 0.01
        with pytest.raises(TimeoutError):
            await wire.readline()
        wire.close()

    run(work())


@each_network
def test_nobody_there_and_no_tls(listening: socket.socket, network: Callable[[], Network], run: Run) -> None:
    thread = serve(listening, b"what?\n")

    async def work() -> None:
        address = address_of(listening, "https")
        with pytest.raises(NoConnection):
            await network().connect(address, secured(address, True), 5)
        with pytest.raises(NoConnection, match="refused"):
            await network().connect(Address.of("http://127.0.0.1:1"), None, 5)

    run(work())
    thread.join()


def test_a_generator_that_is_left_is_closed() -> None:
    closed = []

    async def numbers() -> Any:
        try:
            for number in range(10):
                yield number
        finally:
            closed.append(True)

    found = iterated(numbers())
    assert [next(found), next(found)] == [0, 1]
    found.close()  # type: ignore[attr-defined]
    assert closed
    assert list(iterated(numbers())) == list(range(10))


def test_what_needs_a_loop_is_no_blocking_code() -> None:
    with pytest.raises(AssertionError, match="event loop"):
        finished(asyncio.sleep(0))
