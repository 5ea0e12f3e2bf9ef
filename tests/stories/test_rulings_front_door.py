"""What the specifications leave open about the front door, decided once: each test names its ruling."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aaiclick.config import reset_settings, settings
from aaiclick.orchestration import (
    ajob_test,
    as_task,
    create_job,
    create_task,
    get_job,
    get_job_result,
    get_tasks_for_job,
    list_jobs,
    register_job,
    run_job,
)
from aaiclick.orchestration.rules.states import JobStatus
from tests.cli.conftest import Cli, cli
from tests.orchestration import sample_flows as flows
from tests.server.conftest import FLOWS, Client, client, problem_in, surroundings

__all__ = ["cli", "client", "surroundings"]

LOOKS_LIKE_ONE = {"object_type": "object", "table": "t_1"}


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Sets the environment, of which the settings are read anew."""

    def set_all(**environment: str) -> None:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        reset_settings()

    yield set_all
    monkeypatch.undo()
    reset_settings()


# ---------------------------------------------------------------- 22: retries, and what may fail


async def test_nothing_is_tried_again_unless_it_is_said(on: Any) -> None:
    """Ruling 22: `max_retries` is 0 unless it is given, or WORKER_MAX_RETRIES is set; what is given wins."""
    assert create_task(flows.add, {"a": 1, "b": 2}).max_retries == 0
    on(WORKER_MAX_RETRIES="3")
    assert create_task(flows.add, {"a": 1, "b": 2}).max_retries == 3
    assert create_task(flows.add, {"a": 1, "b": 2}, max_retries=0).max_retries == 0
    assert as_task(flows.add.options(max_retries=5)(1, 2)).max_retries == 5


@pytest.mark.parametrize(("critical", "status"), [(False, "completed"), (True, "failed")])
async def test_what_is_not_critical_may_fail(critical: bool, status: str) -> None:
    """Ruling 22: `critical=False` lets the job complete although the task failed."""
    failing = create_task(flows.fail, critical=critical)
    ended = await ajob_test(await create_job("x", tasks=[failing, create_task(flows.nothing)]))
    assert (ended.status, ended.failed_tasks) == (status, 1)


# ---------------------------------------------------------------- 27: options, and workflows as entries


async def test_a_run_has_options_of_its_own() -> None:
    """Ruling 27: `pipeline.options(key=…, priority=…, preservation_mode=…)(x=3)`."""
    chosen = flows.single.options(key="today", priority=5, preservation_mode="FULL")
    job = await chosen.submit(x=3)
    assert (job.key, job.priority, job.preservation_mode) == ("today", 5, "full")
    assert (await chosen.submit(x=3)).id == job.id


@pytest.mark.parametrize("registered", [True, False])
async def test_a_workflow_runs_as_the_entry_and_stages_its_graph(registered: bool) -> None:
    """Ruling 27: a `@job` entrypoint in `run_job` is one task, whose completion brings the graph."""
    if registered:
        await register_job("flow", flows.pipeline)
    job = await run_job("flow", None if registered else flows.pipeline, {"x": 3, "y": 4})
    assert len(await get_tasks_for_job(job.id)) == 1
    ended = await ajob_test(job)
    assert ended.status == JobStatus.COMPLETED
    assert ended.total_tasks > 1


# ---------------------------------------------------------------- 30: settings


def test_which_database_is_meant(on: Any, surroundings: Path) -> None:
    """Ruling 30: POSTGRES_* count only with POSTGRES_HOST, and AAICLICK_SQL_URL wins over them."""
    on(POSTGRES_USER="me", POSTGRES_PASSWORD="x", POSTGRES_DB="work")
    assert settings().sql_url == f"sqlite+aiosqlite:///{surroundings / 'local.db'}"
    on(POSTGRES_HOST="db")
    assert settings().sql_url == "postgresql+asyncpg://me:x@db:5432/work"
    on(AAICLICK_SQL_URL="mariadb+asyncmy://a:b@c/d")
    assert settings().sql_url == "mariadb+asyncmy://a:b@c/d"


@pytest.mark.parametrize(("beat", "session_s"), [(None, 30), ("5", 30), ("10", 30), ("20", 60)])
def test_how_long_a_session_lives(on: Any, beat: str | None, session_s: float) -> None:
    """Ruling 30: three heartbeats, and 30 seconds at least."""
    on(**({} if beat is None else {"WORKER_HEARTBEAT_INTERVAL": beat}))
    assert settings().session_s == session_s
    assert settings().beat_every_s == (10 if beat is None else float(beat))


# ---------------------------------------------------------------- 31: references


def test_a_reference_is_read_as_such_only_from_python_and_at_the_top() -> None:
    """Ruling 31: of the arguments of `create_task`; what is deeper is the user's."""
    top = create_task(flows.echo, {"value": LOOKS_LIKE_ONE})
    assert top.kwargs["value"] == LOOKS_LIKE_ONE
    deeper = create_task(flows.echo, {"value": {"rows": LOOKS_LIKE_ONE}})
    assert deeper.kwargs["value"]["object_type"] == "pyobj"


async def test_from_rest_a_reference_is_a_plain_dict(client: Client) -> None:
    """Ruling 31: over HTTP it arrives in the body of the task as it was sent."""
    asked = {"name": "echo", "entrypoint": f"{FLOWS}.echo", "kwargs": {"value": LOOKS_LIKE_ONE}}
    made = await client.post("/jobs", json=asked)
    job = await get_job(int(made.json()["id"]))
    assert job is not None
    await ajob_test(job)
    assert await get_job_result(job) == LOOKS_LIKE_ONE


def test_from_the_command_line_a_reference_is_a_plain_dict(cli: Cli) -> None:
    """Ruling 31: the same from `aaiclick run-job`."""
    kwargs = json.dumps({"value": LOOKS_LIKE_ONE})
    assert cli("register-job", f"{FLOWS}.echo", "--kwargs", kwargs).code == 0
    assert cli("run-job", "echo").code == 0

    async def result() -> object:
        (job,) = await list_jobs()
        await ajob_test(job)
        return await get_job_result(job)

    assert asyncio.run(result()) == LOOKS_LIKE_ONE


# ---------------------------------------------------------------- 34: entrypoints


async def test_plain_functions_are_for_python_and_only_marked_ones_come_from_outside(client: Client) -> None:
    """Ruling 34: from Python any importable function; over HTTP those marked, under the prefixes."""
    ended = await ajob_test(await create_job("plain", create_task(flows.plain, {"a": 4})))
    assert await get_job_result(ended) == 4
    for entrypoint, said in ((f"{FLOWS}.plain", "@task"), ("os.system", "AAICLICK_ENTRYPOINT_PREFIXES")):
        answer = await client.post("/jobs", json={"name": "x", "entrypoint": entrypoint, "kwargs": {}})
        assert said in problem_in(answer, 422)["detail"] or answer.status_code == 403
    assert [job.name for job in await list_jobs()] == ["plain"]


# ---------------------------------------------------------------- 44: out of reach


@pytest.mark.parametrize("command", [["job", "list"], ["local", "start"], ["server", "start"], ["worker", "start"]])
def test_a_database_out_of_reach_is_exit_code_six(cli: Cli, on: Any, command: list[str]) -> None:
    """Ruling 44: for whatever needs it, in one line without the password."""
    on(AAICLICK_SQL_URL="postgresql+asyncpg://me:hunter2@127.0.0.1:1/none")
    refused = cli(*command)
    assert (refused.code, refused.out) == (6, "")
    assert "hunter2" not in refused.err
