"""Where the server listens."""

from __future__ import annotations

import socket

import pytest

from aaiclick.errors import InputError
from aaiclick.orchestration.access.tokens import create_token
from aaiclick.server.transport.addresses import is_any, is_loopback, listen, refuse_without_token, url_of


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("example.com", False),
        ("localhost.example.com", False),
    ],
)
async def test_beyond_this_machine_it_needs_a_token(host: str, here: bool) -> None:
    assert is_loopback(host) is here
    if not here:
        with pytest.raises(InputError, match="needs a valid token"):
            await refuse_without_token(host)
        await create_token("x")
    await refuse_without_token(host)


@pytest.mark.parametrize(
    ("host", "everywhere", "shown"),
    [
        ("0.0.0.0", True, "http://0.0.0.0:"),
        ("::", True, "http://[::]:"),
        ("127.0.0.1", False, "http://127.0.0.1:"),
        ("::1", False, "http://[::1]:"),
    ],
)
def test_where_it_is_reached(host: str, everywhere: bool, shown: str) -> None:
    with listen(host, 0) as listening:
        assert is_any(listening) is everywhere
        assert url_of(listening) == f"{shown}{listening.getsockname()[1]}"


def test_a_port_that_is_taken_is_refused() -> None:
    with listen("127.0.0.1", 0) as first, pytest.raises(InputError, match="another process listens"):
        listen("127.0.0.1", first.getsockname()[1])


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.1", "\ud800"])
def test_an_address_that_is_not_ours(host: str) -> None:
    with pytest.raises(InputError, match="--host"):
        listen(host, 0)


def test_it_can_be_listened_on() -> None:
    with listen("localhost", 0) as listening, socket.create_connection(listening.getsockname()[:2]):
        pass


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_answers_are_not_held_back(host: str) -> None:
    """asyncio turns Nagle's delay off for sockets that say they are TCP; each answer would wait 40 ms otherwise."""
    with listen(host, 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP
