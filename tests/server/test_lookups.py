"""What is asked for by its id or name."""

from __future__ import annotations

import pytest

from aaiclick.errors import InputError, NotFound
from aaiclick.orchestration import create_job, register_job, register_worker
from aaiclick.server.lookups import the_entry, the_job, the_task, the_worker
from tests.orchestration import sample_flows as flows
from tests.server.conftest import FLOWS


async def test_what_is_there_is_found() -> None:
    job = await create_job("sum", flows.add(1, 2))
    assert (await the_job(str(job.id))).name == "sum"
    worker = await register_worker("host", 1)
    assert (await the_worker(str(worker.id))).hostname == "host"
    await register_job("nightly", f"{FLOWS}.add")
    assert (await the_entry("nightly")).entrypoint == f"{FLOWS}.add"


@pytest.mark.parametrize("ask", [the_job, the_task, the_worker])
async def test_what_is_not_there_is_told(ask) -> None:
    with pytest.raises(NotFound, match="12345"):
        await ask("12345")
    with pytest.raises(InputError, match="allowed are 1 to"):
        await ask("0")


async def test_an_entry_that_is_not_there() -> None:
    with pytest.raises(NotFound, match="nightly"):
        await the_entry("nightly")
