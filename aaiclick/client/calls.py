"""Requests to one server: with a token, on connections that stay open, repeated where that is safe."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from aaiclick import __version__
from aaiclick.client.exchanges import Exchange
from aaiclick.client.networks import Network, NoConnection, Wire, said
from aaiclick.client.refusals import error_of
from aaiclick.client.tls import secured
from aaiclick.errors import AaiclickError, ConfigError, ServerBusy, ServerUnreachable
from aaiclick.server_address import API, Address

PAUSE_S_MIN, PAUSE_S_MAX = 0.1, 5.0
"""The pauses between repeated requests: each is about twice as long as the one before."""

IDLE_MAX = 20
"""So many connections are kept open for further requests."""

NOT_DONE = frozenset({429})
"""Answers that say that the request was not carried out: whatever it was, it may be repeated."""

AWAY = frozenset({502, 503, 504})
"""Answers that say that the server, or what it needs, is away."""


class Answered(NamedTuple):
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes


class Calls:
    """Requests to one server."""

    def __init__(
        self, network: Network, url: str, token: str, *, verify: Any = True, timeout_s: float = 30.0, retries: int = 3
    ) -> None:
        if not token.isascii() or not token.isprintable() or " " in token:
            raise ConfigError(setting="AAICLICK_API_TOKEN", value="***", rule="it is no token", hint="")
        self.network, self.address = network, Address.of(url)
        self.timeout_s, self.retries = timeout_s, retries
        self._tls = secured(self.address, verify)
        self._headers = {"Host": self.address.named, "User-Agent": f"aaiclick/{__version__}"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._idle: list[Wire] = []

    async def ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None = None,
        body: object = None,
        *,
        repeatable: bool | None = None,
    ) -> Answered:
        """Return an answer of success; raise what the server says otherwise, or ServerUnreachable.

        A request that is not known to have been refused is only made again if it is `repeatable`: by default GET and
        PUT are. At most `retries` times.
        """
        again = method in ("GET", "PUT") if repeatable is None else repeatable
        attempt = -1
        while True:
            is_last = (attempt := attempt + 1) >= self.retries
            try:
                found = await self._once(method, path, query, body, fresh=not again)
            except OSError as error:
                if is_last or not (again or isinstance(error, NoConnection)):
                    raise self.unreachable(error) from error
                await self.network.sleep(pause(attempt))
                continue
            if is_last or not (found.status in NOT_DONE or (again and found.status in AWAY)):
                break
            await self.network.sleep(max(pause(attempt), _asked_pause(found)))
        if not 200 <= found.status < 300:
            raise error_of(found.status, found.body, self.address.url)
        return found

    async def _once(
        self, method: str, path: str, query: Mapping[str, object] | None, body: object, *, fresh: bool
    ) -> Answered:
        wire = await self._connect(fresh=fresh)
        exchange = Exchange(wire)
        try:
            text = b"" if body is None else json.dumps(body).encode()
            more = {} if body is None else {"Content-Type": "application/json"}
            await exchange.send(method, self._target(path, query), self._headers | more, text)
            return Answered(exchange.status, exchange.headers, await exchange.body())
        finally:
            self._leave(exchange)

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        query: Mapping[str, object] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> AsyncGenerator[Exchange, None]:
        """Yield an answer that is read in parts. Nothing is repeated; raise OSError, or what the server says."""
        wire = await self._connect(fresh=True)
        wire.timeout_s = timeout_s or self.timeout_s
        exchange = Exchange(wire)
        try:
            await exchange.send("GET", self._target(path, query), self._headers | dict(headers or {}), b"")
            if exchange.status != 200:
                raise error_of(exchange.status, await exchange.body(), self.address.url)
            yield exchange
        finally:
            self._leave(exchange)

    async def _connect(self, *, fresh: bool) -> Wire:
        """Return a connection; a fresh one for what must not be repeated: an idle one may be ending."""
        while self._idle and not fresh:
            wire = self._idle.pop()
            if not wire.is_stale():
                return wire
            wire.close()
        wire = await self.network.connect(self.address, self._tls, self.timeout_s)
        wire.timeout_s = self.timeout_s
        return wire

    def _leave(self, exchange: Exchange) -> None:
        exchange.wire.timeout_s = self.timeout_s
        if exchange.reusable and len(self._idle) < IDLE_MAX:
            self._idle.append(exchange.wire)
        else:
            exchange.wire.close()

    def _target(self, path: str, query: Mapping[str, object] | None) -> str:
        root = self.address.path if path in ("/healthz", "/readyz", "/metrics") else self.address.path + API
        given = {name: _text(value) for name, value in (query or {}).items() if value is not None}
        return root + path + ("?" + urlencode(given) if given else "")

    def unreachable(self, error: OSError) -> AaiclickError:
        """Return the error for a server that cannot be asked."""
        return ServerUnreachable(url=self.address.url, cause=said(error))

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().close()


def is_away(error: AaiclickError) -> bool:
    """Return whether a server, or what it needs, is away: it may say something else later."""
    return isinstance(error, ServerUnreachable | ServerBusy) or error.facts.get("status") in AWAY


def pause(attempt: int) -> float:
    """Return how many seconds to wait after a failure, with some chance in it: clients must not return together."""
    most: float = min(PAUSE_S_MAX, PAUSE_S_MIN * 2 ** min(attempt, 20))
    return most * (0.5 + random.random() / 2)  # noqa: S311 (no secret)


def _asked_pause(found: Answered) -> float:
    asked = found.headers.get("retry-after", "")
    return min(PAUSE_S_MAX, int(asked)) if asked.isascii() and asked.isdigit() else 0.0


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def part(text: object) -> str:
    """Return a name or an id as a part of a path."""
    return quote(str(text), safe="")
