"""A name for each test, whose Object is gone afterwards; and a way to let others come between two statements."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from aaiclick.data import Context
from aaiclick.errors import DataUnreachable


@pytest.fixture
async def name(context: Context, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    found = re.sub(r"\W", "_", request.node.name)[:60]
    await context.delete_object(found)
    yield found
    await context.delete_object(found)


class Between:
    """A client that does something before or after the first statement that begins so, or loses its answer."""

    def __init__(self, client: Any, words: str, does: Callable[[], Awaitable[Any]], when: str = "before") -> None:
        self._client, self._words, self._does, self._when = client, words, does, when
        self.done = 0

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._client, verb)

    async def command(self, sql: str, settings: Any = None) -> None:
        if self.done or not sql.startswith(self._words):
            await self._client.command(sql, settings)
            return
        self.done += 1
        if self._when in ("before", "unsent"):
            await self._does()
        if self._when != "unsent":
            await self._client.command(sql, settings)
        if self._when == "after":
            await self._does()
        if self._when in ("lost", "unsent"):
            raise DataUnreachable(cause="the engine was killed")


class Intruding:
    """Inside, the context's client is one that lets others come between."""

    def __init__(self, context: Context, words: str, does: Callable[[], Awaitable[Any]], when: str = "before") -> None:
        self._context, self._client = context, context.client
        self.between = Between(context.client, words, does, when)

    def __enter__(self) -> Between:
        self._context._client = self.between
        return self.between

    def __exit__(self, *error: object) -> None:
        self._context._client = self._client


@pytest.fixture
def intruding(context: Context) -> Callable[..., Intruding]:
    def make(words: str, does: Callable[[], Awaitable[Any]], when: str = "before") -> Intruding:
        return Intruding(context, words, does, when)

    return make
