"""The client and the OpenAPI document agree: routes, parameters, bodies and answers."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from aaiclick.client import APIClient, AsyncAPIClient
from aaiclick.client.verbs.catalogue import EntryOptions
from aaiclick.server.app import create_app
from aaiclick.server.openapi import document
from aaiclick.server_address import API

WHOLE = document(create_app())
PROBES = ("/healthz", "/readyz", "/metrics")
LOOPS = {"wait_for_job", "follow_log", "read_whole_log", "iter_jobs", "iter_job_tasks", "follow_events"}
"""Methods that ask by others, tried in tests/client/; the one route that only they ask is here below."""
ASKED_BY_LOOPS = {"GET /api/v1/events/stream": "follow_events"}
ELSEWHERE = {"POST /api/v1/callbacks/{token}": "for outside callers, who have the address of the callback alone"}
"""Routes without a method, each with the reason."""
NOT_PASSED = {
    "GET /api/v1/tasks/{task_id}/logs": {"follow"},  # it is what follow_log is for
    "GET /api/v1/jobs/{job_id}/result": {"exact"},  # which of the two methods is called says it
    "POST /api/v1/registered-jobs/{name}/backfills": {"kwargs", "parallel"},  # a plan needs neither
}


class Asked(NamedTuple):
    """A request that a method makes."""

    verb: str
    method: str
    path: str
    query: set[str]
    body: dict[str, Any]


class Stop(Exception):
    """Nothing is sent."""


class Recorder:
    """Stands for the connection."""

    def __init__(self, verb: str, noted: list[Asked]) -> None:
        self.verb, self.noted = verb, noted

    async def ask(
        self, method: str, path: str, query: Mapping[str, object] | None = None, body: Any = None, **_: object
    ) -> Any:
        given = {name for name, value in (query or {}).items() if value is not None}
        self.noted.append(Asked(self.verb, method, path if path in PROBES else API + path, given, body or {}))
        raise Stop

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, object] | None = None, **_: object) -> AsyncIterator[Any]:
        await self.ask("GET", path, query)
        yield


def verbs() -> dict[str, Any]:
    return {name: verb for name, verb in vars_of(AsyncAPIClient).items() if inspect.iscoroutinefunction(verb)}


def vars_of(kind: type) -> dict[str, Any]:
    found = {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}
    return {name: verb for name, verb in found.items() if callable(verb) and name not in ("aclose", "close")}


def sample(name: str, annotation: str) -> Any:
    if name == "kind":
        return "job"
    if annotation.startswith("bool"):
        return True
    if annotation.startswith(("int", "Id", "float")):
        return 12345
    if annotation.startswith("Mapping"):
        return {"name": "x"}
    if annotation.startswith("Sequence"):
        return [{"column": "x"}] if "Mapping" in annotation else ["x"]
    return "some"


def asked_by(name: str) -> Asked:
    verb = getattr(AsyncAPIClient, name)
    client = AsyncAPIClient("http://nowhere")
    noted: list[Asked] = []
    client._calls = Recorder(name, noted)  # type: ignore[assignment]
    given = {
        each.name: sample(each.name, str(each.annotation))
        for each in list(inspect.signature(verb).parameters.values())[1:]
        if each.kind is not each.VAR_KEYWORD
    }
    if "options" in inspect.signature(verb).parameters:
        given |= {each: sample(each, "str") for each in EntryOptions.__annotations__}
    with pytest.raises(Stop):
        asyncio.run(verb(client, **given))
    return noted[0]


ASKED = {name: asked_by(name) for name in verbs() if name not in LOOPS}


def route_of(asked: Asked) -> str:
    """The route of the document that a request goes to; of two, the one without parameters."""
    found = [
        path
        for path, methods in WHOLE["paths"].items()
        if asked.method.lower() in methods and re.fullmatch(re.sub(r"{\w+}", "[^/]+", path), asked.path)
    ]
    assert found, f"{asked.verb} asks {asked.method} {asked.path}, which is in no document"
    return f"{asked.method} {min(found, key=lambda path: path.count('{'))}"


def facts_of(route: str) -> dict[str, Any]:
    method, path = route.split(" ")
    facts: dict[str, Any] = WHOLE["paths"][path][method.lower()]
    return facts


def test_every_route_has_a_method() -> None:
    routes = {f"{method.upper()} {path}" for path, methods in WHOLE["paths"].items() for method in methods}
    assert {route_of(asked) for asked in ASKED.values()} | ASKED_BY_LOOPS.keys() | ELSEWHERE.keys() == routes
    assert set(ASKED_BY_LOOPS.values()) <= LOOPS


def test_both_clients_have_the_same_methods() -> None:
    blocking, looping = vars_of(APIClient), vars_of(AsyncAPIClient)
    assert blocking.keys() == looping.keys()
    for name, verb in blocking.items():
        assert inspect.signature(verb) == inspect.signature(looping[name])
        assert verb.__doc__ == looping[name].__doc__


@pytest.mark.parametrize("name", sorted(ASKED))
def test_parameters_and_answers_are_those_of_the_document(name: str) -> None:
    asked = ASKED[name]
    route = route_of(asked)
    facts = facts_of(route)
    allowed = NOT_PASSED.get(route, set())
    parameters = {each["name"] for each in facts.get("parameters", ()) if each["in"] == "query"}
    assert asked.query <= parameters
    assert parameters - asked.query <= allowed
    fields = fields_of(facts)
    assert asked.body.keys() <= fields
    assert fields - asked.body.keys() - {"dry_run"} <= allowed
    returned = str(inspect.signature(getattr(AsyncAPIClient, name)).return_annotation)
    if returned not in ("Any", "str", "bool", "int", "LogPart", "pa.Table", "dict[str, Any]"):
        assert returned in answers_of(facts)


def fields_of(facts: dict[str, Any]) -> set[str]:
    """The fields of a body."""
    schema = facts.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    found: set[str] = set()
    for each in (schema, *schema.get("anyOf", ())):
        if "$ref" in each:
            found |= component(each)["properties"].keys()
    return found


def component(reference: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = WHOLE["components"]["schemas"][reference["$ref"].rpartition("/")[2]]
    return found


def answers_of(facts: dict[str, Any]) -> set[str]:
    """The names of what a route answers in success."""
    schemas = [
        content["schema"]
        for status, told in facts["responses"].items()
        if status in ("200", "201")
        for content in told.get("content", {}).values()
    ]
    parts = [part for schema in schemas for part in (schema, *schema.get("anyOf", ()))]
    return {part["$ref"].rpartition("/")[2] for part in parts if "$ref" in part}
