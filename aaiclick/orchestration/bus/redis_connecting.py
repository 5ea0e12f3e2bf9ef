"""Connections to the Redis in AAICLICK_REDIS_URL: a server, or whichever the Sentinels name now."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aaiclick.errors import MissingExtra
from aaiclick.redis_urls import RedisAddress, parse_redis_url

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from redis.asyncio.sentinel import Sentinel

CONNECT_S_MAX = 5.0
BLOCK_S = 5.0
"""How long a read waits on the server for something new."""
COMMAND_S_MAX = BLOCK_S + 5.0
"""How long an answer may take: longer than a read waits, or each quiet one would look like a lost connection."""
PROBE_EVERY_S = 30
CONNECTIONS_MAX = 8
CANCEL_EVERY_S = 0.1


class RedisServer:
    """A client for one event loop, which connects when it is first used. Its commands raise when the server is away.

    Nothing is tried again in here: a caller has to know what it may repeat.
    """

    def __init__(self, url: str, *, name: str) -> None:
        address = parse_redis_url(url)
        self._sentinel: Sentinel | None = None
        self.client: Redis
        try:
            self._open(address, name)
        except ModuleNotFoundError as error:
            raise MissingExtra(what="AAICLICK_REDIS_URL", package=error.name, extra="redis") from None

    def _open(self, address: RedisAddress, name: str) -> None:
        from redis.asyncio import Redis  # an extra dependency: loaded only where there is a Redis
        from redis.asyncio.sentinel import Sentinel

        limits = _limits()
        options: dict[str, Any] = {
            **limits,
            **_login(address),
            "db": address.database,
            "client_name": name,
            "max_connections": CONNECTIONS_MAX,
        }
        if not address.service:
            [(host, port)] = address.hosts
            self.client = Redis(host=host, port=port, **options)
            return
        named: Any = Sentinel  # it has no types
        self._sentinel = named(address.hosts, sentinel_kwargs=limits | _sentinel_login(address))
        self.client = self._sentinel.master_for(address.service, **options)

    async def require_master(self) -> None:
        """Raise ConnectionError if the Sentinels name another server than the one that this client is connected to.

        One that was cut off from them does not know yet that it leads no more: reading there would hear nothing.
        """
        pool: Any = self.client.connection_pool
        if self._sentinel is None or pool.master_address is None:
            return
        named = await self._sentinel.discover_master(pool.service_name)
        if tuple(named) != tuple(pool.master_address):
            raise ConnectionError(f"the Sentinels name another server: {named[0]}:{named[1]}")

    async def close(self) -> None:
        """Close all connections."""
        await self.client.aclose()
        await self.client.connection_pool.disconnect()
        if self._sentinel is not None:
            await self._sentinel.aclose()


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel a task that uses the client, until it has ended.

    The client may swallow a cancellation, for instance one that meets it while it looks whether it is still connected.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=CANCEL_EVERY_S)
    if not task.cancelled():
        task.exception()  # seen: whoever ends it does not ask how it went


def _limits() -> dict[str, Any]:
    from redis.asyncio.retry import Retry  # an extra dependency, as above
    from redis.backoff import NoBackoff

    return {
        "socket_connect_timeout": CONNECT_S_MAX,
        "socket_timeout": COMMAND_S_MAX,
        "health_check_interval": PROBE_EVERY_S,
        "protocol": 2,  # answers have the same form from all versions of the client
        "retry": Retry(NoBackoff(), 0),
    }


def _login(address: RedisAddress) -> dict[str, Any]:
    tls: dict[str, Any] = {"ssl": True} if address.tls else {}
    tls |= {name: value for name, value in address.options.items() if name.startswith("ssl_")}
    return {"username": address.user or None, "password": address.password or None, **tls}


def _sentinel_login(address: RedisAddress) -> dict[str, Any]:
    """Return the login to the Sentinels, which have users and passwords of their own."""
    user, password = (address.options.get(f"sentinel_{name}") for name in ("username", "password"))
    return _login(address) | {"username": user or None, "password": password or None}
