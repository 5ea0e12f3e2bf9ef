"""REST, MCP and the command line show the same of each thing, and none shows a thing that the others do not.

Each thing of `tests/support/doors.py` is asked for through all doors.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import jsonschema  # type: ignore[import-untyped]
import pytest
from typer.main import get_command

from aaiclick.cli import whole_app
from aaiclick.config import reset_settings
from aaiclick.data import create_object_from_value, data_context
from aaiclick.orchestration import (
    NodeDescription,
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
from aaiclick.server.mcp.catalogue import tools
from aaiclick.server.openapi import document
from tests.cli.conftest import Cli, cli
from tests.cli.test_cli import commands
from tests.orchestration.cached_flows import double
from tests.orchestration.data_flows import expecting
from tests.server.conftest import opened, surroundings
from tests.server.mcp.conftest import Agent
from tests.server.outside_flows import chain, echo, fail, workflow
from tests.server.routes.test_backfills import fire
from tests.server.routes.test_tasks import write_log
from tests.support.doors import API, CHANGES, ONLY_COMMANDS, ONLY_REST, ONLY_TOOLS, THINGS

__all__ = ["cli", "surroundings"]

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
            jsonschema.validate(answer.json(), self.schema_of(method, answer))
            return answer.json()
        return {"text": answer.text, "size": int(answer.headers["X-Log-Size"]), "begins_at": 0}

    def schema_of(self, method: str, answer: httpx.Response) -> dict[str, Any]:
        """What the document says of an answer: nothing checks that while it is answered."""
        whole = document(self.agent.client.server)
        asked = f"{method} {answer.request.url.path.removeprefix(API)}"
        (facts,) = (
            methods[method.lower()]
            for path, methods in whole["paths"].items()
            if method.lower() in methods and re.fullmatch(pattern_of(f"{method} {path}"), asked)
        )
        found = facts["responses"][str(answer.status_code)]["content"]["application/json"]["schema"]
        return {**found, "components": whole["components"]}

    async def tool(self, name: str, given: dict[str, Any]) -> Any:
        filled = {key: each.format(**self.ids) if isinstance(each, str) else each for key, each in given.items()}
        whole = await self.agent.whole(name, **filled)
        jsonschema.validate(whole, tools(write=True)[name].output_schema)
        return whole["answer"]

    async def command(self, typed: str) -> Any:
        words = [word.replace("+", " ") for word in typed.format(**self.ids).split(" ")]
        ran = await asyncio.get_running_loop().run_in_executor(None, lambda: self.cli(*words, "--json"))
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
    await ajob_test(await create_job("cached", double(4)))
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
    worker = await register_worker(name="gpu box", node=NodeDescription("box", capabilities={"gpu": "nvidia"}))
    await deregister_worker(worker.id)  # a live one would be lost while it is asked for, on a busy machine
    async with data_context():
        await create_object_from_value({"name": ["Ann"], "at": [datetime(2026, 1, 2, tzinfo=UTC)]}, name="people")
    made: dict[str, Any] = {
        "broken": broken,
        "whole": whole,
        "warned": warned,
        "backfill": backfill,
        "waiting": waiting,
    }
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
    check(routes, covered, others)


def check(there: set[str], asked: set[str], others: set[str]) -> None:
    assert there - asked - others == set(), "at one door only: put it into THINGS, or say why it is nowhere else"
    assert (asked | others) - there == set(), "there is no such thing"
    assert asked & others == set(), "it is asked for, and said to be nowhere else"


def pattern_of(route: str) -> str:
    """What matches the questions that go to a route."""
    method, _, path = route.partition(" ")
    parts = [r"[^/?]+" if part.startswith("{") else re.escape(part) for part in path.removeprefix(API).split("/")]
    return rf"{method} {'/'.join(parts)}(\?.*)?"


def test_every_tool_is_asked() -> None:
    asked = {name for known in THINGS.values() for name, _ in known.tools}
    others = ONLY_TOOLS.keys() | {each for each in CHANGES if "_" in each and "/" not in each}
    check(set(tools(write=True)), asked, others)


def test_every_command_that_prints_json_is_asked() -> None:
    root: Any = get_command(whole_app())
    printing = {" ".join(path) for path in commands(root) if prints_json(root, path)}
    asked = {path for known in THINGS.values() for path in printing if f"{known.command} ".startswith(f"{path} ")}
    others = ONLY_COMMANDS.keys() | {each for each in CHANGES if "/" not in each and "_" not in each}
    check(printing, asked, others)


def prints_json(command: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        command = command.commands[name]
    return any("--json" in each.opts for each in command.params)
