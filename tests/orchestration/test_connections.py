"""The open connection: one for all that happens inside, opened by whoever comes first."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from aaiclick.orchestration import Context, orch_context
from aaiclick.orchestration.connections import connected, coordinated
from tests.orchestration.test_context_entered import make, names_of, new_job
from tests.support.front_door import local, state

__all__ = ["local", "state"]


@pytest.mark.usefixtures("state")
async def test_a_database_and_a_coordinator_are_of_one_connection() -> None:
    async with connected() as database, coordinated() as coordinator, connected() as again:
        assert again is database
        assert coordinator.database is database
        opened = database
    async with orch_context():
        async with connected() as database, coordinated() as coordinator:
            assert coordinator.database is database
        assert database is not opened


@pytest.mark.usefixtures("state")
async def test_a_thread_without_a_loop_has_a_connection_of_its_own() -> None:
    job = await new_job()
    async with Context(job.id) as context:
        async with coordinated() as ours:

            async def theirs() -> bool:
                async with coordinated() as found:
                    await context.apply(make("from the thread"))
                    return found is ours

            assert await asyncio.to_thread(lambda: asyncio.run(theirs())) is False
        await context.apply(make("from the loop"))
    assert await names_of(job) == ["first", "from the thread", "from the loop"]


def test_what_speaks_sql_is_imported_once_it_is_needed() -> None:
    code = (
        "import sys, aaiclick.orchestration.connections, aaiclick.orchestration.context\n"
        "print([name for name in sys.modules if 'sqlalchemy' in name or '.store' in name or '.bus' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
