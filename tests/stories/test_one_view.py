"""REST, MCP and the command line show the same of each thing, and none shows a thing that the others do not.

Each thing is asked for through all doors. Commands may show more, which is listed here field by field. Whatever is new
at one door has to be put into `THINGS`, or where it is said why it is nowhere else.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from aaiclick.cli import app
from aaiclick.config import reset_settings
from aaiclick.data import create_object_from_value, data_context
from aaiclick.orchestration import (
    ajob_test,
    as_task,
    backfill_job,
    cancel_job,
    create_job,
    deregister_worker,
    get_tasks_for_job,
    register_job,
    register_worker,
)
from aaiclick.server.app import create_app
from aaiclick.server.documents import document
from aaiclick.server.mcp.catalogue import tools
from tests.cli.conftest import Cli, cli
from tests.cli.test_cli import commands
from tests.orchestration.data_flows import expecting
from tests.server.conftest import opened, surroundings
from tests.server.mcp.conftest import Agent
from tests.server.outside_flows import chain, echo, fail, workflow
from tests.server.test_backfills import fire
from tests.server.test_tasks import write_log

__all__ = ["cli", "surroundings"]

API = "/api/v1"
SPAN = {"start": "2026-03-01", "end": "2026-03-04"}
DAYS = ("--start", SPAN["start"], "--end", SPAN["end"])
DETAIL = {"errors", "expectations"}
HERE = {"arguments", "log_path"}


@dataclass(frozen=True)
class Thing:
    """How one thing is asked for at each door, and what commands show besides."""

    rest: tuple[str, ...]
    tools: tuple[tuple[str, dict[str, Any]], ...]
    command: str
    more: set[str] = field(default_factory=set)
    apart: frozenset[str] = frozenset()
    """Fields that tools tell in their own way."""
    body: dict[str, Any] | None = None
    read: Callable[[Any], Any] = lambda answer: answer
    """What of a command's answer is compared."""


def thing(
    rest: str, tool: str, command: str, more: set[str] | None = None, given: dict[str, Any] | None = None, **how: Any
) -> Thing:
    """One that takes a question at each door; the tool's arguments are words like `job_id={broken}`."""
    name, *arguments = tool.split(" ")
    found = dict(each.split("=", 1) for each in arguments) | (given or {})
    return Thing((rest,), ((name, found),), command, more or set(), **how)


def result_of(answer: dict[str, Any]) -> dict[str, Any]:
    named = {"result": "result", "complete": "result_complete", "size": "result_size"}
    return {"job_id": answer["id"]} | {name: answer[there] for name, there in named.items()}


def rows_of(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: answer[name] for name in ("columns", "rows", "complete")}


def schema_of(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: answer[name] for name in ("name", "shape", "ordered", "columns")}


THINGS = {
    "jobs": thing("/jobs", "find_jobs", "job list", {"total"}),
    "job": thing("/jobs/{broken}", "get_job job_id={broken}", "job get {broken}", DETAIL),
    "job that waits": thing("/jobs/{waiting}", "get_job job_id={waiting}", "job get {waiting}", DETAIL),
    "errors of a job": Thing(
        ("/jobs/{broken}", "/jobs/{broken}/errors"),
        (("get_job", {"job_id": "{broken}"}), ("get_job_errors", {"job_id": "{broken}"})),
        "job get {broken}",
    ),
    "expectations": Thing(
        ("/jobs/{warned}", "/jobs/{warned}/errors"),
        (("get_job", {"job_id": "{warned}"}), ("get_job_errors", {"job_id": "{warned}"})),
        "job get {warned}",
    ),
    "result": thing(
        "/jobs/{whole}/result", "get_job_result job_id={whole}", "job get {whole} --result", read=result_of
    ),
    "stats": thing("/jobs/{broken}/stats", "get_job_stats job_id={broken}", "job stats {broken}"),
    "graph": thing("/jobs/{waiting}/graph", "get_job_graph job_id={waiting}", "job graph {waiting}"),
    "tasks of a job": thing("/jobs/{waiting}/tasks", "list_job_tasks job_id={waiting}", "job tasks {waiting}"),
    "events": thing(
        "/events?job_id={broken}", "list_job_events job_id={broken}", "job events {broken}", apart=frozenset({"next"})
    ),
    "job that was cancelled": thing(
        "POST /jobs/{cancelled}/cancel", "cancel_job job_id={cancelled}", "job cancel {cancelled}", {"job"}
    ),
    "retry of a job": thing(
        "POST /jobs/{broken}/retry",
        "retry_job job_id={broken}",
        "job retry {broken} --dry-run",
        {"cleared"},
        given={"dry_run": True},
        body={"dry_run": True},
    ),
    "task": thing("/tasks/{failed}", "get_task task_id={failed}", "task get {failed}", {"log_path"}),
    "runs of a task": thing("/tasks/{failed}/runs", "list_task_runs task_id={failed}", "task runs {failed}"),
    "why a task waits": thing("/tasks/{blocked}/pending", "why_pending task_id={blocked}", "task why {blocked}"),
    "clearing a task": thing(
        "POST /tasks/{failed}/clear",
        "clear_task task_id={failed}",
        "task clear {failed} --dry-run",
        {"cleared"},
        given={"dry_run": True},
        body={"dry_run": True},
    ),
    "log": thing("/tasks/{failed}/logs", "read_task_log task_id={failed}", "task logs {failed}", {"task_id", "epoch"}),
    "dead letters": thing("/dead-letters", "list_dead_letters", "dlq list", {f"tasks.{each}" for each in HERE}),
    "dead letters of a job": thing(
        "/dead-letters",
        "list_failed_tasks job_id={broken}",
        "dlq list --job {broken}",
        {f"tasks.{each}" for each in HERE},
    ),
    "registered jobs": thing(
        "/registered-jobs", "list_registered_jobs", "registered-job list", {"registered_jobs.default_kwargs"}
    ),
    "registered job": thing(
        "/registered-jobs/nightly",
        "get_registered_job name=nightly",
        "registered-job get nightly",
        {"default_kwargs", "next_runs"},
    ),
    "run of a registered job": thing(
        "POST /registered-jobs/nightly/run",
        "run_registered_job name=nightly key=monday",
        "run-job nightly --key monday",
        body={"key": "monday"},
    ),
    "fires": thing("/registered-jobs/nightly/fires", "list_fires name=nightly", "registered-job fires nightly"),
    "backfills": thing(
        "/registered-jobs/nightly/backfills", "list_backfills name=nightly", "registered-job backfills nightly"
    ),
    "backfill": thing(
        "/backfills/{backfill}", "get_backfill backfill_id={backfill}", "registered-job get-backfill {backfill}"
    ),
    "plan of a backfill": thing(
        "POST /registered-jobs/nightly/backfills",
        "plan_backfill name=nightly",
        f"registered-job backfill nightly --dry-run {' '.join(DAYS)}",
        given=SPAN,
        body=SPAN | {"dry_run": True},
    ),
    "workers": thing("/workers", "list_workers", "worker list"),
    "worker": Thing(("/workers/{worker}",), (), "worker get {worker}"),
    "draining a worker": thing(
        "POST /workers/{worker}/drain", "drain_worker worker_id={worker}", "worker drain {worker}", {"id"}
    ),
    "health": thing(
        "/health", "check_health", "doctor", {"aaiclick", "python", "packages", "extras", "settings", "healthy"}
    ),
    "audit log": Thing(("/audit",), (), "audit"),
    "objects": thing("/objects", "list_objects", "data list", {"stored"}),
    "columns of an Object": thing(
        "/objects/people/schema", "describe_object name=people", "data show people", read=schema_of
    ),
    "rows of an Object": thing("/objects/people/rows", "read_object name=people", "data show people", read=rows_of),
    "query": thing(
        "POST /objects/people/query", "query_object name=people", "data query SELECT+name,+at+FROM+p_people", body={}
    ),
}

ONLY_REST = {
    "/healthz": "a probe",
    "/readyz": "a probe",
    "/api/v1/openapi.json": "about REST itself",
    "/api/v1/events/stream": "the events of /events, as they happen",
    "/metrics": "a text, the same as that of the command without --json; tests/server/test_metrics.py",
}
ONLY_TOOLS = {
    "trace_lineage": "no other door follows lineage",
    "get_metrics": "the text of /metrics, or some of its lines",
}
ONLY_COMMANDS = {
    "data delete": "nothing is deleted from outside",
    "data rollback": "nothing is deleted from outside",
    "data versions": "of whoever has the engine",
    "job logs": "the logs of its tasks, one after the other",
    "job wait": "as run-job",
    "metrics": "the numbers of the text",
    "migrate": "of whoever has the database",
    "migrate check": "of whoever has the database",
    "migrate current": "of whoever has the database",
    "migrate upgrade": "of whoever has the database",
    "prune": "of whoever has the database",
    "setup": "of whoever has the database",
    "token create": "tokens are made where the server runs",
    "token list": "tokens are made where the server runs",
    "token revoke": "tokens are made where the server runs",
    "local start": "its events are those of processes",
}
CHANGES = {
    "POST /api/v1/jobs",
    "POST /api/v1/dead-letters/{task_id}/replay",
    "POST /api/v1/registered-jobs/{name}/enable",
    "POST /api/v1/registered-jobs/{name}/disable",
    "PUT /api/v1/registered-jobs/{name}",
    "POST /api/v1/backfills/{backfill_id}/cancel",
    "POST /api/v1/workers/{worker_id}/stop",
    *("submit_job", "replay_dead_letter", "enable_registered_job", "disable_registered_job", "register_job"),
    *("backfill_registered_job", "cancel_backfill", "stop_worker"),
    *("dlq replay", "task retry", "job enable", "job disable", "register-job", "registered-job cancel-backfill"),
    "worker stop",
}
"""What changes something each time that it is asked for, and answers with a thing, or the form, of another above."""


# ---------------------------------------------------------------- what there is to be shown


@dataclass
class Stage:
    """The doors, and the ids of what they show."""

    agent: Agent
    cli: Cli
    ids: dict[str, str]

    async def rest(self, asked: str, body: dict[str, Any] | None) -> Any:
        method, path = asked.split(" ") if " " in asked else ("GET", asked)
        answer = await self.agent.client.request(method, path.format(**self.ids), json=body)
        assert answer.status_code in (200, 201), answer.text
        if answer.headers["content-type"] == "application/json":
            return answer.json()
        return {"text": answer.text, "size": int(answer.headers["X-Log-Size"]), "begins_at": 0}

    async def tool(self, name: str, given: dict[str, Any]) -> Any:
        filled = {key: each.format(**self.ids) if isinstance(each, str) else each for key, each in given.items()}
        return await self.agent.ask(name, **filled)

    async def command(self, typed: str) -> Any:
        words = [word.replace("+", " ") for word in typed.format(**self.ids).split(" ")]
        ran = await asyncio.get_running_loop().run_in_executor(None, self.cli, *words, "--json")
        assert ran.code in (0, 1), ran.err
        return ran.data


@pytest.fixture
async def stage(surroundings: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> AsyncIterator[Stage]:
    monkeypatch.setenv("AAICLICK_MCP_WRITE", "1")
    reset_settings()
    async for client in opened():
        yield Stage(Agent(client), cli, await things_made())


async def things_made() -> dict[str, str]:
    failed = as_task(fail())
    broken = await ajob_test(await create_job("broken", failed))
    write_log(failed, "about to fail, in München\n".encode())
    whole = await ajob_test(await workflow.submit(x=1))
    warned = await ajob_test(await create_job("warned", expecting("warn")))
    await register_job("nightly", echo, schedule="@daily", default_kwargs={"value": 1}, timezone="Europe/Berlin")
    backfill = await backfill_job(
        "nightly", datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 3, tzinfo=UTC), parallel=2
    )
    await fire()
    waiting = await chain.submit(x=1)
    blocked = (await get_tasks_for_job(waiting.id))[-1]
    cancelled = await create_job("cancelled", echo(1))
    await cancel_job(cancelled.id)
    worker = await register_worker(name="gpu box")
    await deregister_worker(worker.id)  # a live one would be lost while it is asked for, on a busy machine
    async with data_context():
        await create_object_from_value({"name": ["Ann"], "at": [datetime(2026, 1, 2, tzinfo=UTC)]}, name="people")
    made = {"broken": broken, "whole": whole, "warned": warned, "backfill": backfill, "waiting": waiting}
    made |= {"failed": failed, "blocked": blocked, "cancelled": cancelled, "worker": worker}
    return {name: str(each.id) for name, each in made.items()}


# ---------------------------------------------------------------- the same at each door


async def test_each_thing_is_the_same_at_each_door(stage: Stage, subtests: pytest.Subtests) -> None:
    for name, asked in THINGS.items():
        by_rest = merged([await stage.rest(each, asked.body) for each in asked.rest])
        by_tools = merged([await stage.tool(*each) for each in asked.tools])
        printed = asked.read(await stage.command(asked.command))
        with subtests.test(name):
            if asked.tools:
                assert by_tools.keys() == by_rest.keys()
                assert [key for key in by_rest if by_tools[key] != by_rest[key]] == sorted(asked.apart)
            assert set(beyond(by_rest, washed(printed))) == asked.more


def merged(answers: list[Any]) -> dict[str, Any]:
    return {key: washed(value) for each in answers for key, value in each.items()}


def washed(value: Any) -> Any:
    """Without what another moment changes: how long something took, and how much room is left on the disk."""
    if isinstance(value, str):
        return re.sub(r"\d+\.\d+ (ms|GB)", r"… \1", value)
    if isinstance(value, dict):
        return {name: washed(each) for name, each in value.items()}
    return [washed(each) for each in value] if isinstance(value, list) else value


def beyond(known: Any, shown: Any, place: str = "") -> Iterator[str]:
    """Where more is shown than what is known; all that is known has to be there."""
    if isinstance(known, dict):
        assert known.keys() <= shown.keys(), place
        for name, value in shown.items():
            here = f"{place}.{name}".removeprefix(".")
            if name in known:
                yield from beyond(known[name], value, here)
            else:
                yield here
    elif isinstance(known, list):
        assert len(known) == len(shown), place
        for one, other in zip(known, shown, strict=True):
            yield from beyond(one, other, place)
    else:
        assert known == shown, place


# ---------------------------------------------------------------- no door has something of its own


def test_every_route_is_asked() -> None:
    paths = document(create_app())["paths"]
    routes = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    asked = {each if " " in each else f"GET {each}" for known in THINGS.values() for each in known.rest}
    covered = {route for route in routes if any(re.fullmatch(pattern_of(route), each) for each in asked)}
    others = {f"GET {path}" for path in ONLY_REST} | {each for each in CHANGES if "/" in each}
    assert (covered | others, covered & others) == (routes, set())


def pattern_of(route: str) -> str:
    """What matches the questions that go to a route."""
    method, _, path = route.partition(" ")
    parts = [r"[^/?]+" if part.startswith("{") else re.escape(part) for part in path.removeprefix(API).split("/")]
    return rf"{method} {'/'.join(parts)}(\?.*)?"


def test_every_tool_is_asked() -> None:
    asked = {name for known in THINGS.values() for name, _ in known.tools}
    others = ONLY_TOOLS.keys() | {each for each in CHANGES if "_" in each and "/" not in each}
    assert (asked | others, asked & others) == (set(tools(write=True)), set())


def test_every_command_that_prints_json_is_asked() -> None:
    root: Any = get_command(app)
    printing = {" ".join(path) for path in commands(root) if prints_json(root, path)}
    asked = {path for known in THINGS.values() for path in printing if f"{known.command} ".startswith(f"{path} ")}
    others = ONLY_COMMANDS.keys() | {each for each in CHANGES if "/" not in each and "_" not in each}
    assert (asked | others, asked & others) == (printing, set())


def prints_json(command: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        command = command.commands[name]
    return any("--json" in each.opts for each in command.params)
