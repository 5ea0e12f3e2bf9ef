"""The coordinators that the suite of their contract runs against."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aaiclick.orchestration.coordinator.contract import JobCoordinator as Coordinator
from tests.support.coordinators import IMPLEMENTATIONS


@pytest.fixture(params=sorted(IMPLEMENTATIONS))
async def coordinator(request: pytest.FixtureRequest, migrated_sql_url: str) -> AsyncIterator[Coordinator]:
    async with IMPLEMENTATIONS[request.param](migrated_sql_url) as opened:
        yield opened


@pytest.fixture
async def worker(coordinator: Coordinator) -> int:
    return (await coordinator.register(hostname="here", pid=1, name="w")).id
