"""The server keeps to its OpenAPI document, whatever it is asked: requests are made from the document by schemathesis.

Right and wrong ones; no answer is a fault of ours, or has a status, a kind or a form that is not in the document.
TEST_LONG=1 asks many more.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import requests
import schemathesis
import uvicorn
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from aaiclick.config import reset_settings
from aaiclick.orchestration import create_job, create_task, register_job
from aaiclick.orchestration.access.tokens import create_token
from aaiclick.server.app import create_app
from aaiclick.server.openapi import document
from aaiclick.server.streaming import streams
from aaiclick.server.transport.addresses import listen, url_of

LONG = "TEST_LONG" in os.environ
EXAMPLES = 200 if LONG else 3
ANSWER_S_MAX = 100
"""The first request that needs a child process waits until it has started, which a busy machine may take long for."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
DOCUMENT = schemathesis.openapi.from_dict(document(create_app()))


def _operations() -> Iterator[tuple[str, Any]]:
    for found in DOCUMENT.get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()
        yield f"{operation.method.upper()} {operation.path}", operation


OPERATIONS = dict(_operations())


class Served(NamedTuple):
    """A server, and who asks it."""

    url: str
    session: requests.Session
    known: dict[str, str]
    """Things that are there, by the names that paths give them."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """On SQLite, with a job, its task and an entry of the catalogue; streams end at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AAICLICK_LOCAL_ROOT", str(tmp_path_factory.mktemp("rest") / "root"))
        patch.delenv("AAICLICK_SQL_URL", raising=False)
        patch.setattr(streams, "STREAM_S_MAX", 0.05)
        reset_settings()
        token, known = asyncio.run(_set_up())
        listening = listen("127.0.0.1", 0)
        server = uvicorn.Server(uvicorn.Config(create_app(), log_level="warning", lifespan="on", ws="none"))
        running = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        running.start()
        with requests.Session() as session:
            session.headers["Authorization"] = f"Bearer {token}"
            yield Served(url_of(listening), session, known)
        server.should_exit = True
        running.join()
    reset_settings()


async def _set_up() -> tuple[str, dict[str, str]]:
    task = create_task("tests.support.spinning.spin", {"number": 1, "place": ""})
    job = await create_job("known", task)
    await register_job("entry", "tests.support.spinning.spin")
    return (await create_token("fuzz", "admin")).text, {"job_id": str(job.id), "task_id": str(task.id), "name": "entry"}


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["right", "wrong"])
@pytest.mark.parametrize("name", sorted(OPERATIONS))
@pytest.mark.timeout(1200 if LONG else 120)
def test_every_answer_is_in_the_document(served: Served, name: str, mode: GenerationMode) -> None:
    operation = OPERATIONS[name]
    if mode is GenerationMode.NEGATIVE and not _takes_anything(operation):
        return
    asked = 0

    @seed(2026)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: schemathesis.Case) -> None:
        nonlocal asked
        asked += 1
        if asked % 2:  # else hardly a request would meet anything
            case.path_parameters = {
                part: served.known.get(part, value) for part, value in (case.path_parameters or {}).items()
            }
        case.call_and_validate(base_url=served.url, session=served.session, checks=CHECKS, timeout=ANSWER_S_MAX)

    ask()
    assert asked


def _takes_anything(operation: Any) -> bool:
    """Whether it has parameters or a body: without, nothing can be wrong."""
    return bool(operation.path_parameters or operation.query or operation.headers or operation.body)
