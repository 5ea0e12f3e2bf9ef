"""Canaries in passwords, in a token and in a Secret: they are looked for wherever anything is written or told."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
from sqlalchemy.engine import make_url

from aaiclick.cli import main
from aaiclick.config import reset_settings
from aaiclick.data import data_context
from aaiclick.data.lineage import lineage
from aaiclick.orchestration import (
    Backfill,
    Job,
    Secret,
    backfill_job,
    create_job,
    create_task,
    get_job,
    get_tasks_for_job,
    register_job,
    run_job,
    upsert_registered_job,
)
from aaiclick.orchestration.access.tokens import create_token
from aaiclick.server.app import create_app
from aaiclick.telemetry import masks
from tests.support import secretive, warm

ROOT = Path(__file__).parents[2]
SQL, DATA, SECRET = "bird-one-in-sql", "bird-two-in-data", 'bird "three"/é in secret'
WRONG = "bird-four-wrong-token"
BIRD = re.compile("bird.{0,3}(one|two|three|four)|bird%20%22three")


class Cage:
    """An installation with canaries in it, and all that was found where something can be read."""

    def __init__(self, url: str, home: Path) -> None:
        self.url, self.home = url, home
        self.token = ""
        self.jobs: list[Job] = []
        self.read: dict[str, str] = {}

    def look(self, where: str, text: str | bytes) -> None:
        self.read[where] = text.decode(errors="backslashreplace") if isinstance(text, bytes) else text

    def escaped(self) -> dict[str, str]:
        """Where a canary was seen, and what stood around it."""
        found = {}
        for where, text in self.read.items():
            bird = BIRD.search(text)
            at = bird.start() if bird else text.find(self.token)
            if at >= 0:
                found[where] = text[max(at - 80, 0) : at + 80]
        return found


@pytest.fixture(params=["sqlite", "postgres"])
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def cage(migrated_sql_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cage]:
    url = make_url(migrated_sql_url)
    if url.get_backend_name() != "sqlite":
        url = url.set(password=SQL)  # the tests' own server lets everybody in
    monkeypatch.setenv("AAICLICK_SQL_URL", url.render_as_string(hide_password=False))
    monkeypatch.setenv("AAICLICK_CH_URL", f"clickhouse://default:{DATA}@127.0.0.1:1/default")
    monkeypatch.setenv("AAICLICK_LOCAL_ROOT", str(tmp_path / "root"))
    monkeypatch.setenv("AAICLICK_LOG_DIR", str(tmp_path / "logs"))
    monkeypatch.setenv("AAICLICK_LOG_FORMAT", "json")
    monkeypatch.setenv("AAICLICK_LOG_LEVEL", "debug")
    monkeypatch.setenv(secretive.VARIABLE, SECRET)
    reset_settings()
    masks.forget_all()
    yield Cage(url.render_as_string(hide_password=False), tmp_path)
    masks.forget_all()
    reset_settings()


def test_no_canary_is_seen_anywhere(cage: Cage, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(fill(cage))
    for executor in ("inline", "process"):
        work(cage, executor)
    asyncio.run(settle(cage))
    for path in (cage.home / "logs").rglob("*"):
        cage.look(f"log {path.name}", path.read_bytes())
    asyncio.run(dump_tables(cage))
    asyncio.run(ask_server(cage))
    ask_commands(cage, capsys)
    assert cage.escaped() == {}
    assert len(cage.read) > 60
    assert "logged ***" in "".join(cage.read.values())


def test_no_canary_is_seen_in_the_data(cage: Cage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of operations, names, types, comments, references and errors of ClickHouse's; rows are the user's."""
    monkeypatch.setenv("AAICLICK_CH_URL", f"chdb://{tmp_path / 'data'}")
    monkeypatch.setenv("AAICLICK_OPLOG", "1")
    reset_settings()
    asyncio.run(fill_data(cage))
    for executor in ("inline", "process"):
        work(cage, executor, tasks=3)
    for job in cage.jobs:
        rows = {task.name: (task.error or "").partition(":")[0] for task in asyncio.run(get_tasks_for_job(job.id))}
        assert rows == {"spill_into_data": "", "return_view": "ValueExposed", "fail_in_data": "DataRefused"}
    for path in (cage.home / "logs").rglob("*"):
        cage.look(f"log {path.name}", path.read_bytes())
    asyncio.run(dump_data(cage))
    asyncio.run(dump_tables(cage))
    asyncio.run(ask_server(cage))
    assert cage.escaped() == {}
    told = "".join(cage.read.values())
    assert "ValueExposed" in told


# ---------------------------------------------------------------- what goes on


async def fill_data(cage: Cage) -> None:
    """A job for each kind of worker, whose bodies take the secret to the data."""
    cage.token = (await create_token("canary", "admin")).text
    secret = Secret(f"env:{secretive.VARIABLE}")
    for name in ("inline", "process"):
        bodies = (secretive.spill_into_data, secretive.return_view, secretive.fail_in_data)
        tasks = [create_task(body, {"secret": secret}, name=body.__name__, critical=False) for body in bodies]
        cage.jobs.append(await create_job(name, tasks=tasks))


async def dump_data(cage: Cage) -> None:
    """All that ClickHouse keeps beside rows, and the log of operations."""
    async with data_context(oplog=False) as context:
        for question in (
            "SELECT name, create_table_query, comment FROM system.tables WHERE database = currentDatabase()",
            "SELECT table, name, type, comment FROM system.columns WHERE database = currentDatabase()",
            "SELECT * FROM aai_oplog",
        ):
            found = await context.client.rows(question)
            assert found.columns[0]
            cage.look(question, repr(found.columns))
        traced = await lineage("p_spilled", "both")
        assert any("***" in each.query for each in traced.operations)
        cage.look("lineage", repr(traced.operations) + traced.markdown())
    for path in cage.home.rglob("*"):
        if path.is_file() and path.name != "environment":
            cage.look(f"file {path.name}", path.read_bytes())


async def fill(cage: Cage) -> None:
    """Jobs for both kinds of workers, with all that bodies can do wrong."""
    cage.token = (await create_token("canary", "admin")).text
    secret = Secret(f"env:{secretive.VARIABLE}")
    await register_job("nightly", secretive.with_a_login, default_kwargs={"secret": secret})
    for name in ("inline", "process"):
        wrong = [
            create_task(body, {"secret": secret}, name=body.__name__, critical=False)
            for body in (secretive.fail, secretive.give_back, secretive.hand_on)
        ]
        others = [create_task(body, critical=False) for body in (secretive.print_environment, secretive.return_address)]
        noisy = create_task(secretive.blab_and_fail, {"secret": secret}, max_retries=1, name="noisy")
        last = create_task(secretive.reach_data, critical=False)
        cage.jobs += [await create_job(name, tasks=[*wrong, *others, noisy, last]), await run_job("nightly")]


def work(cage: Cage, executor: str, tasks: int = 10) -> None:
    """A real worker, that leaves when half of all is done."""
    command = ["-m", "aaiclick", "worker", "start", "--executor", executor, "--max-tasks", str(tasks), "--verbose"]
    ran = warm.run(
        [sys.executable, *command, "--concurrency", "2"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert ran.returncode == 0, ran.stderr
    assert all(json.loads(line) for line in ran.stderr.splitlines() if line)
    cage.look(f"worker {executor}", ran.stderr + ran.stdout)


async def settle(cage: Cage) -> None:
    """All of it has ended, and as it should have."""
    ended = [await get_job(job.id) for job in cage.jobs]
    endings = [job.status for job in ended if job is not None]
    assert endings == ["failed", "completed", "failed", "completed"]
    for job in cage.jobs[::2]:
        rows = {task.name: task for task in await get_tasks_for_job(job.id)}
        errors = {name: (task.error or "").partition(":")[0] for name, task in rows.items()}
        assert errors == {
            "fail": "ValueError",
            "give_back": "ValueExposed",
            "hand_on": "ValueExposed",
            "print_environment": "",
            "return_address": "" if cage.url.startswith("sqlite") else "ValueExposed",
            "noisy": "ValueError",
            "reach_data": "DataUnreachable",
        }


# ---------------------------------------------------------------- where it can be read


async def dump_tables(cage: Cage) -> None:
    url = make_url(cage.url)
    if url.get_backend_name() == "sqlite":
        connection = sqlite3.connect(str(url.database))
        cage.look("the database", "\n".join(connection.iterdump()))
        connection.close()
        return
    server = await asyncpg.connect(url.set(drivername="postgresql").render_as_string(hide_password=False))
    try:
        names = await server.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        assert len(names) > 15
        for (name,) in names:
            rows = await server.fetch(f'SELECT t::text FROM "{name}" t')
            cage.look(f"table {name}", "\n".join(row[0] for row in rows))
    finally:
        await server.close()


async def ask_server(cage: Cage) -> None:
    """Every page that can be got, with ids that are there."""
    app = create_app()
    tasks = [task for job in cage.jobs for task in await get_tasks_for_job(job.id)]
    ids: dict[str, list[Any]] = {
        "{job_id}": [job.id for job in cage.jobs],
        "{task_id}": [task.id for task in tasks],
        "{worker_id}": sorted({task.worker_id for task in tasks if task.worker_id}),
        "{name}": ["nightly", "spilled", "daily"],
        "{backfill_id}": [(await fill_times()).id],
        "{ending}": [job.id for job in cage.jobs],
    }
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost:8765") as client,
    ):
        for token in (cage.token, WRONG):
            client.headers["Authorization"] = f"Bearer {token}"
            for path, verbs in app.openapi()["paths"].items():
                if "get" not in verbs or path.endswith("/stream"):  # the stream tells the events of the page
                    continue
                path = path.replace("{kind}", "job")
                place = re.search(r"\{\w+\}", path)
                for value in ids[place[0]] if place else [""]:
                    answer = await client.get(path.replace(place[0], str(value)) if place else path)
                    known = (200, 404, 409, 503) if token == cage.token else (200, 401, 503)
                    assert answer.status_code in known, (path, answer.text)
                    cage.look(f"{token == WRONG} GET {path} {value}", f"{answer.headers}\n{answer.text}")
        client.headers["Authorization"] = f"Bearer {cage.token}"
        await ask_as_agent(cage, client, ids)


async def fill_times() -> Backfill:
    """An entry with a schedule, and past times of it that nobody runs."""
    secret = {"secret": Secret(f"env:{secretive.VARIABLE}")}
    await upsert_registered_job("daily", secretive.with_a_login, "@daily", default_kwargs=secret)
    begins = datetime(2026, 1, 1, tzinfo=UTC)
    return await backfill_job("daily", begins, begins + timedelta(days=3), kwargs=secret)


async def ask_as_agent(cage: Cage, client: httpx.AsyncClient, ids: dict[str, list[Any]]) -> None:
    """Every tool that reads, with the same ids; what is refused is read too."""

    async def said(method: str, params: dict[str, Any]) -> httpx.Response:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = await client.post("/mcp", json=body, headers={"Accept": "application/json, text/event-stream"})
        assert answer.status_code == 200, answer.text
        return answer

    tools = (await said("tools/list", {})).json()["result"]["tools"]
    assert len(tools) > 20
    for tool in tools:
        needed = tool["inputSchema"].get("required", [])
        for value in ids.get(f"{{{needed[0]}}}", ["nightly", "spilled"]) if needed else [""]:
            arguments = {needed[0]: str(value)} if needed else {}
            answer = await said("tools/call", {"name": tool["name"], "arguments": arguments})
            cage.look(f"tool {tool['name']} {value}", f"{answer.headers}\n{answer.text}")


def ask_commands(cage: Cage, capsys: pytest.CaptureFixture[str]) -> None:
    """What people and scripts type, with an address that does not answer too."""
    job, task = cage.jobs[0], asyncio.run(get_tasks_for_job(cage.jobs[0].id))[0]
    for typed in (
        "setup",
        "doctor",
        "doctor --json",
        "metrics",
        "job list --json",
        f"job get {job.id} --json",
        f"job get {job.id}",
        f"job get {job.id} --result",
        f"job logs {job.id} --failed",
        f"job stats {job.id}",
        f"task get {task.id} --json",
        f"task why {task.id}",
        "registered-job list --json",
        "registered-job get nightly",
        "registered-job get nightly --json",
        "registered-job backfills daily --json",
        "registered-job fires daily --json",
        "worker list --json",
        "token list --json",
        "migrate",
        "--debug data list",
    ):
        cage.look(typed, _typed(typed, capsys))
    os.environ["AAICLICK_SQL_URL"] = f"postgresql://u:{SQL}@127.0.0.1:1/x"
    for typed in ("--debug job list", "doctor --json", "--debug setup", "--debug worker start --max-tasks 1"):
        reset_settings()
        cage.look(f"{typed} without a server", _typed(typed, capsys))
    os.environ["AAICLICK_SQL_URL"] = f"postgresql://u:{SQL}@127.0.0.1:port/x"
    reset_settings()
    cage.look("a wrong address", _typed("job list", capsys))


def _typed(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    before, sys.argv = sys.argv, ["aaiclick", *words.split()]
    try:
        with pytest.raises(SystemExit):
            main()
    finally:
        sys.argv = before
    out, err = capsys.readouterr()
    assert out or err, words
    return out + err
