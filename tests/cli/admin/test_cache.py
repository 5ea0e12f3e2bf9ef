"""`aaiclick cache` and the options of `run-job` about it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from aaiclick.orchestration import ajob_test, as_task, create_job, get_job
from tests.cli.conftest import Cli, cli
from tests.orchestration.cached_flows import double

__all__ = ["cli"]

DOUBLE = "tests.orchestration.cached_flows.double"


def run(x: int) -> None:
    async def work() -> None:
        await ajob_test(await create_job("one", as_task(double(x))))

    asyncio.run(work())


def test_results_are_listed_and_removed(root: Path, cli: Cli) -> None:
    run(1)
    run(2)
    shown = cli("cache", "list")
    assert (shown.code, shown.out.count(DOUBLE)) == (0, 2)
    assert "2 results" in shown.err
    page = cli("cache", "list", DOUBLE, "--limit", "1", "--json").data
    assert len(page["entries"]) == 1
    assert cli("cache", "clear", "--id", page["entries"][0]["id"], "--json").data == {"removed": 1}
    assert "1 result removed." in cli("cache", "clear", DOUBLE).err
    assert cli("cache", "clear", "--json").data == {"removed": 0}
    assert cli("cache", "clear", "--id", "5").code == 3


def test_a_job_is_run_without_the_cache_or_refreshes_it(root: Path, cli: Cli) -> None:
    for option, mode in (("--no-cache", "off"), ("--refresh-cache", "refresh")):
        made = cli("run-job", "d", "--entrypoint", DOUBLE, "--kwargs", '{"x": 1}', option, "--json").data
        assert made["cache_mode"] == mode
        job = asyncio.run(get_job(int(made["id"])))
        assert job is not None
        assert job.cache_mode == mode
    refused = cli("run-job", "d", "--entrypoint", DOUBLE, "--no-cache", "--refresh-cache")
    assert (refused.code, "one of them" in refused.err) == (2, True)
