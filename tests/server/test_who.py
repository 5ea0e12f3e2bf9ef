"""Who asks, and what they may do."""

from __future__ import annotations

import pytest

from aaiclick.orchestration.rules.roles import Role
from aaiclick.server.app import create_app
from aaiclick.server.documents import document
from tests.server.conftest import Client, problem_in

WRITES = [
    (method, path)
    for path, methods in document(create_app())["paths"].items()
    for method in methods
    if method != "get" and not path.endswith("/query")
]


def test_each_role_includes_those_before_it() -> None:
    assert [role.may(Role.OPERATOR) for role in Role] == [False, True, True, True]
    assert [Role.AUTHOR.may(role) for role in Role] == [True, True, True, False]


@pytest.mark.parametrize(("method", "path"), WRITES)
async def test_a_viewer_changes_nothing(client: Client, method: str, path: str) -> None:
    url = path.removeprefix("/api/v1").format(job_id=1, task_id=1, worker_id=1, name="x")
    body = {"name": "x", "entrypoint": "a.b"} if path.endswith("/jobs") else {"entrypoint": "a.b"}
    needs_body = path.endswith(("/jobs", "/{name}"))
    given = body if needs_body else {} if path.endswith("/run") else None
    answer = await client.request(method, url, json=given, headers=client.of("viewer"))
    assert "needs the role" in problem_in(answer, 403)["detail"]
