"""Calls to the servers of a coordinator: over connections that are kept, to the next address if one does not answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from aaiclick import errors
from aaiclick.clock import SYSTEM_CLOCK, Clock
from aaiclick.orchestration.coordinator.http.connection import Answer, Connection, Lost, NoConnection
from aaiclick.orchestration.coordinator.http.protocol import (
    GZIP,
    JSON,
    MSGPACK,
    OCTETS,
    PACKED_FROM,
    PREFIX,
    VERSION,
    VERSION_HEADER,
    Ask,
    LogPiece,
    Wrong,
    packed,
    read,
    unpacked,
    written,
)
from aaiclick.server_address import Address

if TYPE_CHECKING:
    import ssl

IDLE_S_MAX = 45.0
"""Seconds after which an unused connection is closed: servers close theirs after 60."""

TRIES_MAX = 4
"""How often one call is made, if connections end or servers are busy; its caller tries again later."""

BUSY_S_MAX = 10.0
"""Seconds for which a busy server is waited for, however long it asks for."""

ANSWER_S_MAX = 60.0
"""The default timeout of a call, after which it is made again on another connection: a network that drops everything
tells nobody, and neither does a process that is stopped. The longest calls are held for 25 seconds."""

LONG_S_MAX = 600.0
"""The timeout of calls with much to write: graphs and reports."""

AWAY = frozenset(
    {
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
"""What a busy server answers, or a proxy without one, or a proxy that closes a connection nobody used."""

T = TypeVar("T")


class Wire(Protocol):
    """An open connection to a server; see `Connection`."""

    reusable: bool

    def is_open(self) -> bool:
        """Return whether it looks open."""

    async def send(self, method: str, target: str, headers: bytes, body: bytes) -> Answer:
        """Send a call and return its answer; raise Lost if the connection ends before that is complete."""

    def close(self) -> None:
        """Close at once."""


class Calls:
    """Makes the calls of one event loop. `token` is asked for the token at each call, since it may change."""

    def __init__(
        self,
        addresses: Sequence[Address],
        token: Callable[[], str],
        *,
        media: str = MSGPACK,
        secured: ssl.SSLContext | None = None,
        clock: Clock = SYSTEM_CLOCK,
        connect: Callable[[Address, ssl.SSLContext | None], Awaitable[Wire]] = Connection.open,
    ) -> None:
        self.addresses = list(addresses)
        self.media = media
        self.clock = clock
        self._token = token
        self._secured = secured
        self._connect = connect
        self._first = random.randrange(len(self.addresses))  # workers spread over the servers  # noqa: S311
        self._idle: dict[Address, list[tuple[Wire, float]]] = {address: [] for address in self.addresses}

    @property
    def address(self) -> Address:
        """Where the next call goes."""
        return self.addresses[self._first]

    async def ask(self, verb: str, asked: Ask, kind: type[T], *, within_s: float = 0.0) -> T:
        """Make a call and return its answer. Raises what the server raised, or CoordinatorUnreachable.

        It is repeated if the connection ends before the answer, no answer comes `within_s` (0: ANSWER_S_MAX), or the
        server is busy. The repeat says so, since the first may have been carried out. A server that does not
        understand this version is passed over as long as another may: not all are brought up to date at once.
        """
        trouble, refusing = "", set[Address]()
        for tried in range(max(TRIES_MAX, len(self.addresses) + 1)):
            address = self.address
            try:
                answer = await self._try(address, verb, asked, within_s or ANSWER_S_MAX)
            except NoConnection as error:
                trouble = str(error)
                self._turn_from(address)
                if tried + 1 >= len(self.addresses):  # all were tried: its caller waits, and tries again
                    break
                continue
            except Lost as error:
                trouble, asked = f"the connection ended: {error}", msgspec.structs.replace(asked, again=True)
                self._turn_from(address)
                continue
            if answer.status == HTTPStatus.UPGRADE_REQUIRED:
                refusing.add(address)
                if len(refusing) < len(self.addresses):
                    trouble = self._trouble(answer)
                    self._turn_from(address)
                    continue
            if answer.status not in AWAY:
                return self._understood(address, answer, kind)
            trouble, asked = self._trouble(answer), msgspec.structs.replace(asked, again=True)
            self._turn_from(address)
            await self.clock.sleep(_pause_s(answer))
        raise errors.CoordinatorUnreachable(url=self._shown(), cause=trouble)

    async def _try(self, address: Address, verb: str, asked: Ask, within_s: float) -> Answer:
        method, target, media, body = self._request(verb, asked)
        is_packed = len(body) >= PACKED_FROM
        if is_packed:
            body = packed(body)
        connection = await self._connection(address)
        try:
            headers = self._headers(address, media, is_packed)
            async with asyncio.timeout(within_s):
                answer = await connection.send(method, f"{address.path}{PREFIX}{target}", headers, body)
        except TimeoutError:
            raise Lost(f"no answer in {within_s:g} s") from None
        except asyncio.CancelledError:
            self._turn_from(address)  # its caller has waited long enough
            raise
        if connection.reusable:
            self._idle[address].append((connection, self.clock.monotonic()))
        return answer

    def _request(self, verb: str, asked: Ask) -> tuple[str, str, str, bytes]:
        """Return method, target, media type and body of a call. A piece of a log is its own body."""
        if isinstance(asked, LogPiece):
            return "PUT", asked.target, OCTETS, asked.data
        return "POST", verb, self.media, written(asked, self.media)

    def _headers(self, address: Address, media: str, is_packed: bool) -> bytes:
        lines = {
            "host": address.named,
            "authorization": f"Bearer {self._token()}",
            VERSION_HEADER: str(VERSION),
            "content-type": media,
            "accept": self.media,
            "accept-encoding": GZIP,
        }
        if is_packed:
            lines["content-encoding"] = GZIP
        return "".join(f"{name}: {value}\r\n" for name, value in lines.items()).encode("latin-1")

    async def _connection(self, address: Address) -> Wire:
        idle, now = self._idle[address], self.clock.monotonic()
        while idle:
            connection, since = idle.pop()
            if connection.is_open() and now - since < IDLE_S_MAX:
                return connection
            connection.close()
        return await self._connect(address, self._secured if address.secure else None)

    def _turn_from(self, address: Address) -> None:
        """Begin with the next address from now on, unless another call has done that already."""
        if self.address == address:
            self._first = (self._first + 1) % len(self.addresses)

    def _understood(self, address: Address, answer: Answer, kind: type[T]) -> T:
        media = answer.headers.get("content-type", "").partition(";")[0].strip()
        body = unpacked(answer.body) if answer.headers.get("content-encoding") == GZIP else answer.body
        if answer.status == HTTPStatus.OK and media in (JSON, MSGPACK):
            return read(body, media, kind)
        if answer.status == HTTPStatus.UPGRADE_REQUIRED:
            told = _wrong(body, media).detail
            raise errors.ProtocolRefused(url=address.url, version=VERSION, told=told)
        raise self._error(address, answer.status, _wrong(body, media))

    def _error(self, address: Address, status: int, wrong: Wrong) -> Exception:
        """Return the error that the server met, as if it had been met here."""
        kind = getattr(errors, wrong.error, None) if wrong.error else None
        if isinstance(kind, type) and issubclass(kind, errors.AaiclickError):
            return kind(**wrong.facts)
        cause = f"it answered {status}: {wrong.detail[:300] or 'nothing that is understood'}"
        return errors.CoordinatorUnreachable(url=address.url, cause=cause)

    def _trouble(self, answer: Answer) -> str:
        media = answer.headers.get("content-type", "").partition(";")[0].strip()
        return f"it answered {answer.status}: {_wrong(answer.body, media).detail[:300]}".rstrip(": ")

    def _shown(self) -> str:
        return ", ".join(address.url for address in self.addresses)

    def close(self) -> None:
        """Close all connections that are not in use."""
        for idle in self._idle.values():
            while idle:
                idle.pop()[0].close()


def _wrong(body: bytes, media: str) -> Wrong:
    """What a refusal says; little, if it is not from a server of ours."""
    with suppress(errors.InputError):
        return read(body, MSGPACK if media == MSGPACK else JSON, Wrong)
    return Wrong()


def _pause_s(answer: Answer) -> float:
    """Return for how long a busy server asks to wait, with a jitter: all its callers were told the same."""
    text = answer.headers.get("retry-after", "1")
    asked = float(text) if text.isascii() and text.replace(".", "", 1).isdigit() else 1.0
    return min(asked, BUSY_S_MAX) * random.uniform(0.5, 1.0)  # noqa: S311 (no secret)
