"""The embedded engine, opened once for each file of tests, and a context for each test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from aaiclick.backend import get_ch_url
from aaiclick.data import Context, Object, data_context
from aaiclick.data.clients.opening import close_client, open_client
from tests.data.roads import road as road
from tests.data.roads import web as web


@pytest.fixture(scope="module")
def ch_url() -> Iterator[str]:
    """The address of the embedded engine, which stays open: opening it costs more than a test."""
    url = get_ch_url()
    asyncio.run(open_client(url))
    yield url
    asyncio.run(close_client(url))


@pytest.fixture
async def context(ch_url: str) -> AsyncIterator[Context]:
    async with data_context() as found:
        yield found


@pytest.fixture
async def numbers(context: Context) -> Object:
    """1, 2, 3, 4."""
    return await context.create_object_from_value([1, 2, 3, 4])


@pytest.fixture
async def sales(context: Context) -> Object:
    """Four sales in two cities; of one, nobody knows how many."""
    return await context.create_object_from_value(
        {
            "city": ["Rome", "Oslo", "Rome", "Oslo"],
            "price": [1.5, 2.0, 2.5, 4.0],
            "pieces": [3, None, 1, 2],
            "paid": [True, False, True, True],
        }
    )
