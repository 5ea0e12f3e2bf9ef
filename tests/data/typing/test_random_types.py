"""Random expressions over columns of all types, computed by ClickHouse and by plain Python: they must agree.

5,000 of them, and 100,000 with TEST_LONG=1; TEST_SEED gives others. What they are made of: tests/support/expressions.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aaiclick.data import data_context
from aaiclick.data.clients.opening import _borrow
from aaiclick.data.clients.pool import PooledClient
from aaiclick.data.embedded.directory_lock import find_gateway
from tests.support.expressions.asking import Compared, compare, random_batch

LONG = bool(os.environ.get("TEST_LONG"))
BATCHES, IN_BATCH = 1_000 if LONG else 50, 100
"""Tables, and how many expressions are asked for at once."""

AGAIN_EACH = 1 if LONG else 10
"""How many tables come for each that is asked over the gateway, too."""

SEED = os.environ.get("TEST_SEED", "1")

pytestmark = pytest.mark.timeout(14_400 if LONG else 900)


@pytest.fixture
async def over_the_gateway(ch_url: str) -> AsyncIterator[PooledClient]:
    """A client of the same engine, as another process would have it."""
    endpoint = await asyncio.to_thread(find_gateway, Path(ch_url.removeprefix("chdb://")), 10)
    assert endpoint is not None
    found = _borrow(endpoint)
    yield found
    await found.close()


async def test_expressions_of_all_types_give_what_python_computes_or_are_refused(
    ch_url: str, over_the_gateway: PooledClient
) -> None:
    """Their answers are Python's, of the type that was known before, and the same over the gateway."""
    found, other = Compared(), 0
    for number in range(BATCHES):
        async with data_context() as context:
            batch = await random_batch(context, f"{SEED}.{number}", IN_BATCH)
            found.answers.clear()
            await compare(context.client.rows, batch, found)
            if number % AGAIN_EACH == 0:
                again = Compared()
                await compare(over_the_gateway.rows, batch, again)
                other += again.answers != found.answers
    assert found.wrong == [], f"{len(found.wrong)} of {found.asked}"
    assert other == 0
    assert found.asked >= BATCHES * IN_BATCH
    assert found.refused > 0
