"""HTTP/1.1 on a connection: a request, and its answer, whole or in parts. Redirects are not followed."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator

from aaiclick.client.networks import Cut, Wire

HEADERS_MAX = 200
PART_BYTES = 65_536

_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: .*)?")
_TOKEN = re.compile("[!-~]+")


class Exchange:
    """A request on a connection, and its answer."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.status = 0
        self.headers: dict[str, str] = {}
        self.reusable = False
        """Whether the answer is complete, and the connection stays open."""

    async def send(self, method: str, target: str, headers: dict[str, str], body: bytes) -> None:
        """Send the request, and read the status and headers of the answer; raise OSError."""
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        if body or method != "GET":
            lines.append(f"Content-Length: {len(body)}")
        await self.wire.write("\r\n".join([*lines, "", ""]).encode("ascii") + body)
        version = b""
        while self.status < 200:
            found = _STATUS.fullmatch((await self.wire.readline()).rstrip(b"\r\n"))
            if found is None:
                raise Cut("what answers does not speak HTTP/1.1, or has closed the connection")
            version, self.status, self.headers = found[1], int(found[2]), await self._read_headers()
        self._stays = version == b"1" and self.headers.get("connection", "").lower() != "close"

    async def _read_headers(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for _ in range(HEADERS_MAX):
            line = await self._line()
            if not line:
                return found
            name, colon, value = line.decode("latin-1").partition(":")
            if not colon or not _TOKEN.fullmatch(name):
                break
            found[name.lower()] = value.strip()
        raise Cut("what answers does not speak HTTP/1.1")

    async def _line(self) -> bytes:
        line = await self.wire.readline()
        if not line.endswith(b"\n"):
            raise Cut("the connection was closed within the answer")
        return line.rstrip(b"\r\n")

    async def body(self) -> bytes:
        """Return the whole body."""
        return b"".join([part async for part in self.parts()])

    async def parts(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives; raise Cut if it is not complete."""
        if self.status in (204, 304):
            pass
        elif self.headers.get("transfer-encoding", "").lower() == "chunked":
            while size := _size((await self._line()).partition(b";")[0].strip(), 16):
                async for part in self._exactly(size):
                    yield part
                await self._line()
            while await self._line():  # trailers
                pass
        elif "content-length" in self.headers:
            async for part in self._exactly(_size(self.headers["content-length"].encode(), 10)):
                yield part
        else:
            while part := await self.wire.read(PART_BYTES):
                yield part
            return
        self.reusable = self._stays

    async def _exactly(self, size: int) -> AsyncGenerator[bytes, None]:
        while size:
            part = await self.wire.read(min(size, PART_BYTES))
            if not part:
                raise Cut("the connection was closed within the answer")
            size -= len(part)
            yield part


def _size(text: bytes, number_base: int) -> int:
    if not re.fullmatch(rb"[0-9a-fA-F]{1,15}", text):
        raise Cut("what answers does not speak HTTP/1.1")
    try:
        return int(text, number_base)
    except ValueError:
        raise Cut("what answers does not speak HTTP/1.1") from None
