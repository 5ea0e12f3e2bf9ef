"""Bad input through every door that takes it: Python, the command line, REST, agents. Nothing of it is written."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from aaiclick.errors import InputError
from aaiclick.orchestration import create_job, list_jobs, list_registered_jobs, register_job, upsert_registered_job
from tests.cli.conftest import Cli, cli
from tests.orchestration import sample_flows as flows
from tests.server.auth.test_actors import HOST, RULES
from tests.server.conftest import FLOWS, Client, client, each_client, problem_in, surroundings
from tests.server.mcp.conftest import Agent, writer

__all__ = ["cli", "client", "each_client", "surroundings", "writer"]

NOTHING = f"{FLOWS}.nothing"

SCHEDULES = {
    "": "schedule: ",
    "* * * *": "schedule: ",
    "* * * * * *": "schedule: ",
    "* * * * * * *": "schedule: ",
    "61 * * * *": "schedule minute: ",
    "*/0 * * * *": "schedule minute: ",
    "\uff11 * * * *": "schedule minute: ",
    "0 0 30 2 *": "schedule day of month: ",
}
ZONES = ("", "Europe/Nowhere", "../../etc/passwd", "a\x00b")
CATALOGUE: list[tuple[dict[str, Any], str]] = [
    *(({"schedule": text}, said) for text, said in SCHEDULES.items()),
    *(({"schedule": "0 3 * * *", "timezone": zone}, "timezone: ") for zone in ZONES),
]

NO_NAMES = ("", " ", "a\x00b", "\ud800", "a\u202eb", "\x1b[31m", "a\nb", "x" * 10_000, " a", "a ")
NAMES = ("\U0001f600", "<script>alert(1)</script>", "naïve", "x" * 200)

NO_IDS = ("0", "-1", str(2**63), "1e3", "0x10", "1.5")
NOT_THERE = ("12345", str(2**63 - 1))

NO_PAGES = ({"limit": "-1"}, {"limit": "1000000000"}, {"limit": "x"}, {"offset": "-5"}, {"limit": "0"})

VERBS_WITH_ID = (
    *("job wait", "job logs", "job graph", "task logs", "task why", "task retry", "dlq replay"),
    *("token revoke", "registered-job cancel-backfill"),
)
"""The others are asked where they are at home."""


def is_refused(answer: Any, said: str, code: int = 2) -> None:
    """One line on stderr that says what and how, and nothing else."""
    assert (answer.code, answer.out, answer.err.count("\n")) == (code, "", 1), answer
    assert said in answer.err
    assert "bug in aaiclick" not in answer.err


# ---------------------------------------------------------------- cron


async def test_no_door_registers_what_never_fires(client: Client, writer: Agent) -> None:
    for given, said in CATALOGUE:
        for register in (register_job, upsert_registered_job):
            with pytest.raises(InputError, match=said):
                await register("x", NOTHING, **given)
        answer = await client.put("/registered-jobs/x", json={"entrypoint": NOTHING, **given})
        assert problem_in(answer, 422)["detail"].startswith(said)
        told = await writer.refused("register_job", name="x", entrypoint=NOTHING, **given)
        assert told["what"].startswith(said)
    assert await list_registered_jobs() == []


def test_the_command_line_registers_nothing_that_never_fires(cli: Cli) -> None:
    for given, said in CATALOGUE:
        options = [word for name, text in given.items() for word in (f"--{name}", text)]
        is_refused(cli("register-job", NOTHING, *options), said)
    assert cli("registered-job", "list", "--json").data == {"registered_jobs": []}


def test_a_time_in_a_gap_and_in_a_fold_is_taken_and_shown_with_offsets(cli: Cli) -> None:
    for hour in ("2", "3"):
        made = cli(
            "register-job", NOTHING, "--name", hour, "--schedule", f"30 {hour} * * *", "--timezone", "Europe/Berlin"
        )
        assert (made.code, made.err) == (0, "")
        shown = [line.split()[-1] for line in made.out.splitlines() if line.startswith("next ") and line[5].isdigit()]
        assert len(shown) == 5
        assert {time[-6:] for time in shown} <= {"+01:00", "+02:00"}


# ---------------------------------------------------------------- strings and names


def sent(name: str, **more: Any) -> dict[str, Any]:
    """Half of a surrogate pair travels only as an escape, which httpx does not write."""
    body = json.dumps({"name": name, "entrypoint": NOTHING, **more})
    return {"content": body, "headers": {"Content-Type": "application/json"}}


async def test_a_name_is_one_over_http_or_it_is_refused(client: Client, writer: Agent) -> None:
    for name in NO_NAMES:
        for asked in (sent(name), sent("x", key=name)):
            told = problem_in(await client.post("/jobs", **asked), 422)["detail"]
            assert told.isprintable()
            assert len(told) < 300
        if name.isprintable():
            told = (await writer.refused("submit_job", name=name, entrypoint=NOTHING))["what"]
            assert told.startswith("Job name: ")
    for key in ("", "a\x01b", "x" * 10_000):
        headers = {"Idempotency-Key": key}
        problem_in(await client.post("/jobs", json={"name": "x", "entrypoint": NOTHING}, headers=headers), 422)
    assert await list_jobs() == []
    for name in NAMES:
        answer = await client.post("/jobs", **sent(name))
        assert (answer.status_code, answer.json()["name"]) == (201, name)
        assert answer.headers["content-type"] == "application/json"


def test_a_name_is_one_on_the_command_line_or_it_is_refused(cli: Cli) -> None:
    for name in NO_NAMES:
        is_refused(cli("run-job", name, "--entrypoint", NOTHING), "Job name: ")
        is_refused(cli("run-job", "x", "--entrypoint", NOTHING, "--key", name), "key: ")
        is_refused(cli("register-job", NOTHING, "--name", name), "Job name: ")
        is_refused(cli("token", "create", name), "Token name: ")
    assert cli("job", "list", "--json").data["jobs"] == []


async def test_names_that_look_alike_are_told_apart_on_every_database(each_client: Client) -> None:
    alike = ["nightly", "Nightly", "nightlý", "night ly"]
    for name in alike:
        made = await each_client.put(f"/registered-jobs/{name}", json={"entrypoint": NOTHING})
        assert made.status_code == 200, made.text
        assert (await each_client.post("/jobs", **sent("x", key=name))).status_code == 201
        assert (await each_client.post("/jobs", **sent("x", key=name))).status_code == 200
    listed = (await each_client.get("/registered-jobs")).json()["registered_jobs"]
    assert sorted(entry["name"] for entry in listed) == sorted(alike)
    problem_in(await each_client.post("/jobs", **sent("y", key="nightly")), 409)
    problem_in(await each_client.get("/registered-jobs/NIGHTLY"), 404)
    assert len((await each_client.get("/jobs")).json()["jobs"]) == len(alike)


# ---------------------------------------------------------------- ids, pages, searches


async def test_an_id_is_refused_or_not_found_on_every_route_and_database(each_client: Client) -> None:
    for rule in RULES:
        method, path = rule.split()
        if "_id}" not in path:
            continue
        for given, status in [*((text, 422) for text in NO_IDS), *((text, 404) for text in NOT_THERE)]:
            address = re.sub(r"\{\w+_id\}", given, path)
            told = problem_in(await each_client.request(method, f"{HOST}{address}"), status)["detail"]
            assert given in told, (rule, told)


def test_an_id_is_refused_or_not_found_for_every_verb(cli: Cli) -> None:
    for verb in VERBS_WITH_ID:
        for given in NO_IDS:
            is_refused(cli(*verb.split(), given), given)
        is_refused(cli(*verb.split(), NOT_THERE[0]), NOT_THERE[0], code=3)


async def test_a_page_that_is_none_is_refused_on_every_list(client: Client) -> None:
    lists = [rule.split()[1] for rule in RULES if rule.startswith("GET") and "{" not in rule]
    for path in (*lists, "/api/v1/jobs/5/tasks", "/api/v1/objects/x/rows"):
        for asked in () if path in ("/healthz", "/readyz") else NO_PAGES:
            (name,) = asked
            assert name in problem_in(await client.get(f"{HOST}{path}", params=asked), 422)["detail"], path


@pytest.mark.parametrize("noun", ["job list", "worker list", "dlq list"])
def test_a_page_that_is_none_is_refused_by_every_list(cli: Cli, noun: str) -> None:
    for asked in NO_PAGES:
        ((name, text),) = asked.items()
        is_refused(cli(*noun.split(), f"--{name}", text), name)


def test_a_status_that_is_none_gets_those_that_are(cli: Cli) -> None:
    for noun, near in (("job", "Did you mean running?"), ("worker", "Valid are: active, idle, stopping, stopped")):
        is_refused(cli(noun, "list", "--status", "RUNNIG"), near)


async def test_a_status_that_is_none_gets_those_that_are_over_http(client: Client, writer: Agent) -> None:
    for path, valid in (("/jobs", "cancelled"), ("/jobs/5/tasks", "upstream_failed"), ("/workers", "stopping")):
        told = problem_in(await client.get(path, params={"status": "RUNNIG"}), 422)["detail"]
        assert "'RUNNIG'" in told
        assert valid in told
    told = await writer.refused("list_workers", status="RUNNIG")
    assert "stopping" in told["to_do"]


async def test_what_is_searched_for_is_bound_on_every_database(each_client: Client) -> None:
    names = ["it's", 'a "b"', "back\\slash", "100%", "%'; DROP TABLE jobs; --"]
    for name in names:
        await create_job(name, flows.nothing)
    for name in names:
        found = (await each_client.get("/jobs", params={"name_like": name})).json()["jobs"]
        assert name in [job["name"] for job in found]
    assert len((await each_client.get("/jobs")).json()["jobs"]) == len(names)
