"""One connection to a server: HTTP/1.1 with keep-alive, one call at a time.

It understands what the servers and proxies of this protocol answer: bodies with a length, or in chunks. It follows no
redirections and stores no cookies. Decision 0081 says why there is no library.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, NamedTuple

from aaiclick.server_address import Address

if TYPE_CHECKING:
    import ssl

HEAD_BYTES_MAX = 65_536
BODY_BYTES_MAX = 256 * 2**20
PART_BYTES = 65_536
CONNECT_S_MAX = 5.0

_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: .*)?")


class Lost(ConnectionError):
    """The connection ended, or what arrived was no answer: whether the call was carried out is not known."""


class NoConnection(ConnectionError):
    """There is no connection: the call was not sent."""


class Answer(NamedTuple):
    """What a server answered."""

    status: int
    headers: dict[str, str]
    body: bytes


class Connection:
    """An open connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.reusable = True
        """Whether another call can be made on it."""

    @classmethod
    async def open(cls, address: Address, secured: ssl.SSLContext | None) -> Connection:
        """Connect; raise NoConnection if that fails or takes longer than CONNECT_S_MAX."""
        try:
            async with asyncio.timeout(CONNECT_S_MAX):
                reader, writer = await asyncio.open_connection(
                    address.host, address.port, ssl=secured, limit=HEAD_BYTES_MAX
                )
        except TimeoutError:
            raise NoConnection(f"no answer in {CONNECT_S_MAX:g} s") from None
        except OSError as error:  # also what TLS refuses
            raise NoConnection(error.strerror or str(error)) from error
        return cls(reader, writer)

    def is_open(self) -> bool:
        """Whether it looks open: nothing has arrived that nobody asked for, such as its end."""
        return self.reusable and not self._reader.at_eof() and not self._writer.is_closing()

    async def send(self, method: str, target: str, headers: bytes, body: bytes) -> Answer:
        """Send a call and return its answer; raise Lost if the connection ends before that is complete."""
        try:
            version, status, found = await self.begin(method, target, headers, body)
            return await self._answer(version, status, found)
        except (OSError, EOFError, asyncio.LimitOverrunError, ValueError) as error:
            raise Lost(str(error) or type(error).__name__) from error
        finally:
            if not self.reusable:  # also if the caller gave up: the answer would be taken for that of the next call
                self.close()

    async def begin(self, method: str, target: str, headers: bytes, body: bytes) -> tuple[bytes, int, dict[str, str]]:
        """Send a call; return the version of HTTP, the status and the headers of its answer. Raises what streams do."""
        self.reusable = False
        line = f"{method} {target} HTTP/1.1\r\n".encode("ascii")
        self._writer.write(b"%s%scontent-length: %d\r\n\r\n" % (line, headers, len(body)) + body)
        await self._writer.drain()
        version, status, found = b"1", 100, dict[str, str]()
        while status < 200:
            first, *lines = (await self._reader.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")
            said = _STATUS.fullmatch(first)
            if said is None:
                raise ValueError("what answers does not speak HTTP/1.1")
            version, status, found = said[1], int(said[2]), _headers(lines)
        return version, status, found

    async def _answer(self, version: bytes, status: int, headers: dict[str, str]) -> Answer:
        body = await self._body(status, headers)
        keeps = version == b"1" and headers.get("connection", "").lower() != "close"
        self.reusable = keeps and ("content-length" in headers or "transfer-encoding" in headers or status == 204)
        return Answer(status, headers, body)

    async def _body(self, status: int, headers: dict[str, str]) -> bytes:
        if status in (204, 304):
            return b""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return await self._chunks()
        if "content-length" in headers:
            return await self._reader.readexactly(_size(headers["content-length"], 10))
        return await self._reader.read(BODY_BYTES_MAX)

    async def _chunks(self) -> bytes:
        parts: list[bytes] = []
        total = 0
        async for part in self._each_chunk():
            total += len(part)
            _size(str(total), 10)
            parts.append(part)
        return b"".join(parts)

    async def _each_chunk(self) -> AsyncGenerator[bytes, None]:
        while size := _size((await self._reader.readuntil(b"\r\n")).split(b";")[0].decode("ascii").strip(), 16):
            yield await self._reader.readexactly(size)
            await self._reader.readexactly(2)
        while await self._reader.readuntil(b"\r\n") != b"\r\n":  # trailers
            pass

    async def parts(self, status: int, headers: dict[str, str]) -> AsyncGenerator[bytes, None]:
        """Yield the body of the answer to `begin` as it arrives, however long it is. Raises what streams do."""
        if status in (204, 304):
            return
        if headers.get("transfer-encoding", "").lower() == "chunked":
            async for part in self._each_chunk():
                yield part
            return
        left = int(headers["content-length"]) if "content-length" in headers else None
        while left is None or left > 0:
            part = await self._reader.read(PART_BYTES if left is None else min(left, PART_BYTES))
            if not part and left:
                raise EOFError("the connection ended within the answer")
            if not part:
                return
            left = None if left is None else left - len(part)
            yield part

    def close(self) -> None:
        """Close at once."""
        self.reusable = False
        self._writer.transport.abort()


def _headers(lines: list[bytes]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon:
            raise ValueError("a header without a colon")
        found[name.lower()] = value.strip()
    return found


def _size(text: str, base: int) -> int:
    size = int(text, base)
    if not 0 <= size <= BODY_BYTES_MAX:
        raise ValueError(f"an answer of {text} bytes")
    return size
