"""What tasks expected of their data and did not find, on the command line."""

from __future__ import annotations

import asyncio

from aaiclick.orchestration import ajob_test, create_job
from tests.cli.conftest import Cli
from tests.orchestration import data_flows as flows


def test_job_get_and_task_get_show_them(cli: Cli) -> None:
    async def work() -> int:
        return (await ajob_test(await create_job("warned", flows.expecting("warn")))).id

    job_id = str(asyncio.run(work()))
    (first, _) = cli("job", "get", job_id, "--json").data["expectations"]
    assert (first["outcome"], first["line"]) == ("warned", "unique id (once each): 2 of 3 rows, such as id=2")
    line = f"expectation warned (task {first['task_id']}): {first['line']}"
    assert line in cli("job", "get", job_id).out
    assert line in cli("task", "get", first["task_id"]).out
    assert cli("task", "get", first["task_id"], "--json").data["expectations"][0] == first
