"""A server with things to ask for, once for all tests here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from aaiclick.client import APIClient
from aaiclick.config import reset_settings
from aaiclick.data import create_object_from_value, data_context
from aaiclick.orchestration import ajob_test, create_job, register_job
from aaiclick.orchestration.access import untrusted_entrypoints
from tests.client import flows
from tests.support.web_server import WebServer, web_server

PREFIXES = "tests.client"


@dataclass
class Served:
    """A server, a client of it, and the ids of what is there."""

    server: WebServer
    client: APIClient
    jobs: dict[str, Any]


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AAICLICK_LOCAL_ROOT", str(tmp_path_factory.mktemp("client") / "root"))
        patch.setenv("AAICLICK_ENTRYPOINT_PREFIXES", PREFIXES)
        patch.delenv("AAICLICK_SQL_URL", raising=False)
        untrusted_entrypoints._known.clear()
        reset_settings()
        jobs = asyncio.run(things_made())
        with web_server() as server, APIClient(server.url, server.token) as client:
            yield Served(server, client, jobs)
    reset_settings()


async def things_made() -> dict[str, Any]:
    await register_job("echo", flows.echo, default_kwargs={"value": 1})
    async with data_context():
        await create_object_from_value({"n": list(range(10)), "name": list("abcdefghij")}, name="people", order=True)
    return {
        "exact": await ajob_test(await create_job("exact", flows.exact())),
        "table": await ajob_test(await create_job("table", flows.table())),
        "whole": await ajob_test(await flows.several.submit()),
        "broken": await ajob_test(await create_job("broken", flows.fail())),
        "waiting": await create_job("waiting", flows.echo(1)),
    }
