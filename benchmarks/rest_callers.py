"""Callers that keep their connections: little more than a socket, so that the server is measured and not they."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

READ_BYTES_MAX = 64 * 1024 * 1024

Request = tuple[str, str, Any]
"""Method, path and body; None for no body."""


@dataclass
class Caller:
    """One connection."""

    host: str
    port: int
    token: str
    _reader: asyncio.StreamReader = field(init=False)
    _writer: asyncio.StreamWriter = field(init=False)

    async def open(self) -> Caller:
        self._reader, self._writer = await asyncio.open_connection(self.host, self.port, limit=READ_BYTES_MAX)
        return self

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """The status and the body of the answer."""
        sent = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(sent)}\r\n\r\n"
        )
        self._writer.write(head.encode() + sent)
        first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        sizes = [line.partition(":")[2] for line in lines if line.lower().startswith("content-length:")]
        return int(first.split()[1]), await self._reader.readexactly(int(sizes[0]))

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


@dataclass(frozen=True)
class Figures:
    """What a number of answers cost."""

    per_s: float
    p50_ms: float
    p95_ms: float
    body_bytes: int


async def measure(
    where: tuple[str, int], token: str, request: Callable[[int], Request], *, answers: int, callers: int
) -> Figures:
    """So many answers to so many callers at once; anything but success ends the measurement."""
    crew = [await Caller(*where, token).open() for _ in range(callers)]
    costs: list[float] = []
    numbers = iter(range(answers))
    size = 0

    async def work(caller: Caller) -> None:
        nonlocal size
        for number in numbers:
            started = time.perf_counter()
            status, body = await caller.ask(*request(number))
            costs.append(1000 * (time.perf_counter() - started))
            size = len(body)
            if status not in (200, 201):
                raise SystemExit(f"{request(number)[:2]}: {status} {body[:300]!r}")

    try:
        for caller in crew:
            await caller.ask(*request(-1))  # the first answers open connections to the database
        began = time.perf_counter()
        await asyncio.gather(*map(work, crew))
        took_s = time.perf_counter() - began
    finally:
        await asyncio.gather(*(caller.close() for caller in crew))
    return Figures(len(costs) / took_s, *_at(costs), size)


def _at(costs: list[float]) -> tuple[float, float]:
    return statistics.median(costs), sorted(costs)[int(0.95 * (len(costs) - 1))]
