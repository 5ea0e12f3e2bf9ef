"""Connections to Redis: logins, TLS, timeouts, a missing extra; real Sentinels whose server is killed."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import pytest
from redis.asyncio import Redis

from aaiclick.errors import MissingExtra
from aaiclick.orchestration.bus import reconnecting, redis_connecting
from aaiclick.orchestration.bus import redis as bus_module
from aaiclick.orchestration.bus.local import Room
from aaiclick.orchestration.bus.redis import RedisBus
from aaiclick.orchestration.bus.redis_connecting import BLOCK_S, COMMAND_S_MAX, RedisServer, end
from aaiclick.orchestration.rules.naming.hints import READY
from tests.support.restarts import sentinels

WAIT_S_MAX = 60.0
LONG = pytest.mark.skipif("TEST_LONG" not in os.environ, reason="needs seconds: TEST_LONG=1")


def options_of(url: str) -> dict[str, Any]:
    return dict(RedisServer(url, name="me").client.connection_pool.connection_kwargs)


def test_an_answer_may_take_longer_than_a_read_waits() -> None:
    assert COMMAND_S_MAX > BLOCK_S
    assert options_of("redis://host")["socket_timeout"] == COMMAND_S_MAX


def test_a_login_is_read_from_the_address() -> None:
    found = options_of("redis://some%40body:s%3Ae@host:1234/5")
    assert [found[name] for name in ("host", "port", "db", "username", "password")] == [
        *("host", 1234, 5, "some@body", "s:e")
    ]


def test_with_tls() -> None:
    server = RedisServer("rediss://host?ssl_ca_certs=/ca.pem", name="me")
    pool: Any = server.client.connection_pool
    assert pool.connection_class.__name__ == "SSLConnection"
    assert pool.connection_kwargs["ssl_ca_certs"] == "/ca.pem"


def test_sentinels_have_a_login_of_their_own() -> None:
    server = RedisServer("rediss+sentinel://a:p@one:1,two/service/3?sentinel_password=q", name="me")
    found: Any = server.client.connection_pool
    asked: Any = server._sentinel
    assert (found.service_name, found.connection_kwargs["password"], found.connection_kwargs["db"]) == (
        *("service", "p", 3),
    )
    ways = [each.connection_pool.connection_kwargs for each in asked.sentinels]
    assert [(way["host"], way["port"], way["password"], way["username"]) for way in ways] == [
        ("one", 1, "q", None),
        ("two", 26379, "q", None),
    ]
    assert all("db" not in way or way["db"] == 0 for way in ways)


def test_without_the_package_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(MissingExtra, match=r"aaiclick\[redis\]"):
        RedisServer("redis://host", name="me")


async def test_a_task_that_swallows_a_cancellation_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_connecting, "CANCEL_EVERY_S", 0.001)

    async def stubborn() -> None:
        for _ in range(2):
            try:
                await asyncio.sleep(WAIT_S_MAX)
            except asyncio.CancelledError:
                continue

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    await end(task)
    assert task.done()


async def test_a_single_server_is_its_own_master(redis_server: str) -> None:
    server = RedisServer(redis_server, name="me")
    await server.client.ping()
    await server.require_master()
    await server.close()


@LONG
async def test_after_a_failover_wake_ups_go_through_the_other_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three Sentinels, a server and its replica; the server is killed under load."""
    monkeypatch.setattr(reconnecting, "PAUSE_S_MAX", 0.2)
    with sentinels() as watched:
        teller, listener = (RedisBus("sqlite:///beside", watched.url, "test:") for _ in range(2))
        for bus in (teller, listener):
            bus._room = Room()
        await listener.listen()
        teller.tell([READY])
        assert await listener.wait(WAIT_S_MAX) == {READY}
        await asyncio.to_thread(watched.kill_master)
        async with asyncio.timeout(WAIT_S_MAX):
            while not (teller.trouble and listener.trouble):  # they notice
                teller.tell([READY])
                await listener.wait(0.05)
            while teller.trouble or listener.trouble:  # Sentinels need a moment to agree
                await listener.wait(0.05)
        while await listener.wait(0.05):
            pass
        assert (teller.trouble, listener.trouble) == ("", "")
        teller.tell([READY])
        assert await listener.wait(WAIT_S_MAX) == {READY}
        await teller.close()
        await listener.close()


@LONG
async def test_a_server_that_was_cut_off_from_its_sentinels_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """It still answers, and does not know that another one leads now."""
    monkeypatch.setattr(bus_module, "BLOCK_S", 0.1)
    monkeypatch.setattr(reconnecting, "PAUSE_S_MAX", 0.2)
    with sentinels() as watched:
        listener = RedisBus("sqlite:///beside", watched.url, "test:")
        listener._room = Room()
        await listener.listen()
        assert not listener.trouble
        await asyncio.to_thread(watched.fail_over)
        async with asyncio.timeout(WAIT_S_MAX):
            while True:
                server = RedisServer(watched.url, name="me")
                client: Redis = server.client
                try:
                    await client.xadd("test:hints", {"from": "me", "hints": READY})
                finally:
                    await server.close()
                if READY in await listener.wait(0.2):
                    break
        await listener.close()
