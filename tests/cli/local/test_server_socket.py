"""The door of a fleet's server: ports, the extra, and the first token."""

from __future__ import annotations

import socket
from importlib.util import find_spec

import pytest

from aaiclick.cli.local import server_socket as module
from aaiclick.cli.local.server_socket import first_token, open_door
from aaiclick.errors import InputError, MissingExtra
from aaiclick.orchestration.access.tokens import authenticate, create_token, list_tokens, revoke_token


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra."""
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "uvicorn" else find_spec(name))


def test_the_usual_port_or_any_that_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        usual = taken.getsockname()[1]
        monkeypatch.setattr(module, "PORT", usual)
        door = open_door(None, None)
        assert door is not None
        with door:
            assert door.getsockname()[0] == "127.0.0.1"
            assert door.getsockname()[1] not in (0, usual)
    door = open_door(None, None)
    assert door is not None
    with door:
        assert door.getsockname() == ("127.0.0.1", usual)


def test_a_port_that_was_asked_for_and_is_taken_is_refused() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(InputError, match=r"--port: .* another process listens there"),
    ):
        open_door(None, taken.getsockname()[1])


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="--host"):
        open_door("no.such.host.invalid", None)


@pytest.mark.usefixtures("bare")
def test_without_the_extra_there_is_none_unless_it_was_asked_for() -> None:
    assert open_door(None, None) is None
    for asked in (("127.0.0.1", None), (None, 0)):
        with pytest.raises(MissingExtra, match=r"needs uvicorn.*aaiclick\[server\]"):
            open_door(*asked)


async def test_a_local_database_gets_one_token_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        made = await first_token(door)
        assert made is not None
        assert (await authenticate(made.read_text().strip())).role == "admin"
        assert await first_token(door) is None
        (token,) = await list_tokens()
        await revoke_token(token.id)
        assert await first_token(door) is None


@pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)
async def test_a_database_of_many_gets_none(migrated_sql_url: str, on_url) -> None:
    on_url(migrated_sql_url)
    with socket.create_server(("127.0.0.1", 0)) as door:
        assert await first_token(door) is None
    assert await list_tokens() == []


async def test_beyond_this_machine_it_needs_a_token_that_counts() -> None:
    revoked = await create_token("x")
    await revoke_token(revoked.token.id)
    with socket.create_server(("0.0.0.0", 0)) as door:
        with pytest.raises(InputError, match="needs a valid token"):
            await first_token(door)
        await create_token("y")
        assert await first_token(door) is None
