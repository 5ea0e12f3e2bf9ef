"""Remembered results are listed and removed by function, by name, and one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from aaiclick.errors import EntrypointError, InputError, NotFound
from aaiclick.orchestration import ajob_test, as_task, clear_cache, create_job, list_cache
from tests.orchestration import cached_flows as flows
from tests.support.front_door import local

__all__ = ["local"]

DOUBLE = "tests.orchestration.cached_flows.double"


async def test_they_are_listed_and_removed(local: Path) -> None:
    for call in (flows.double(1), flows.double(2), flows.in_job(3)):
        await ajob_test(await create_job("one", as_task(call)))
    everything = await list_cache()
    assert [entry.kind for entry in everything] == ["cache"] * 3
    newest = (await list_cache(limit=1))[0]
    assert newest == everything[0]
    assert await list_cache(before=newest.id) == everything[1:]
    assert await list_cache(flows.double) == await list_cache(DOUBLE) == await list_cache(f"@{DOUBLE}")
    assert await clear_cache(entry_id=newest.id) == 1
    assert await clear_cache(flows.double) == 2
    assert await clear_cache() == 0


async def test_what_cannot_be_is_refused(local: Path) -> None:
    with pytest.raises(NotFound, match="cache entry"):
        await clear_cache(entry_id=5)
    with pytest.raises(InputError):
        await clear_cache(entry_id=0)
    with pytest.raises(InputError):
        await list_cache(limit=0)
    with pytest.raises(EntrypointError):
        await list_cache(lambda: None)
