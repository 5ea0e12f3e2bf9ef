"""Who asks, and what they may do."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from aaiclick.orchestration.access.audit import list_audit
from aaiclick.orchestration.rules.roles import Role
from aaiclick.server.app import create_app
from tests.server.conftest import Client, problem_in

RULES: dict[str, Role | None] = {
    "GET /healthz": None,
    "GET /readyz": None,
    "GET /metrics": Role.VIEWER,
    "GET /api/v1/jobs": Role.VIEWER,
    "GET /api/v1/jobs/{job_id}": Role.VIEWER,
    "GET /api/v1/jobs/{job_id}/stats": Role.VIEWER,
    "GET /api/v1/jobs/{job_id}/errors": Role.VIEWER,
    "GET /api/v1/jobs/{job_id}/graph": Role.VIEWER,
    "GET /api/v1/jobs/{job_id}/result": Role.VIEWER,
    "GET /api/v1/jobs/{job_id}/tasks": Role.VIEWER,
    "GET /api/v1/tasks/{task_id}": Role.VIEWER,
    "GET /api/v1/tasks/{task_id}/runs": Role.VIEWER,
    "GET /api/v1/tasks/{task_id}/pending": Role.VIEWER,
    "GET /api/v1/tasks/{task_id}/logs": Role.VIEWER,
    "GET /api/v1/workers": Role.VIEWER,
    "GET /api/v1/workers/{worker_id}": Role.VIEWER,
    "GET /api/v1/tasks": Role.VIEWER,
    "GET /api/v1/nodes": Role.VIEWER,
    "GET /api/v1/nodes/{name}": Role.VIEWER,
    "GET /api/v1/cache": Role.VIEWER,
    "GET /api/v1/registered-jobs": Role.VIEWER,
    "GET /api/v1/registered-jobs/{name}": Role.VIEWER,
    "GET /api/v1/registered-jobs/{name}/fires": Role.VIEWER,
    "GET /api/v1/registered-jobs/{name}/backfills": Role.VIEWER,
    "GET /api/v1/backfills/{backfill_id}": Role.VIEWER,
    "GET /api/v1/objects": Role.VIEWER,
    "GET /api/v1/objects/{name}/schema": Role.VIEWER,
    "GET /api/v1/objects/{name}/rows": Role.VIEWER,
    "GET /api/v1/objects/{name}/arrow": Role.VIEWER,
    "GET /api/v1/jobs/{job_id}/result/arrow": Role.VIEWER,
    "GET /api/v1/ids/{kind}/{ending}": Role.VIEWER,
    "POST /api/v1/objects/{name}/query": Role.VIEWER,
    "GET /api/v1/dead-letters": Role.VIEWER,
    "GET /api/v1/events": Role.VIEWER,
    "GET /api/v1/events/stream": Role.VIEWER,
    "GET /api/v1/health": Role.VIEWER,
    "GET /api/v1/openapi.json": Role.VIEWER,
    "POST /mcp": Role.VIEWER,
    "POST /api/v1/jobs/{job_id}/cancel": Role.OPERATOR,
    "POST /api/v1/jobs/{job_id}/retry": Role.OPERATOR,
    "POST /api/v1/tasks/{task_id}/clear": Role.OPERATOR,
    "POST /api/v1/dead-letters/{task_id}/replay": Role.OPERATOR,
    "POST /api/v1/workers/{worker_id}/drain": Role.OPERATOR,
    "POST /api/v1/workers/{worker_id}/stop": Role.OPERATOR,
    "POST /api/v1/nodes/{name}/cordon": Role.OPERATOR,
    "POST /api/v1/nodes/{name}/uncordon": Role.OPERATOR,
    "POST /api/v1/nodes/{name}/drain": Role.OPERATOR,
    "POST /api/v1/nodes/{name}/remove": Role.OPERATOR,
    "POST /api/v1/cache/clear": Role.OPERATOR,
    "POST /api/v1/registered-jobs/{name}/enable": Role.OPERATOR,
    "POST /api/v1/registered-jobs/{name}/disable": Role.OPERATOR,
    "POST /api/v1/registered-jobs/{name}/run": Role.OPERATOR,
    "POST /api/v1/registered-jobs/{name}/backfills": Role.OPERATOR,
    "POST /api/v1/backfills/{backfill_id}/cancel": Role.OPERATOR,
    "POST /api/v1/jobs": Role.AUTHOR,
    "PUT /api/v1/registered-jobs/{name}": Role.AUTHOR,
    "GET /api/v1/audit": Role.ADMIN,
    "POST /api/v1/callbacks/{token}": None,  # the token in the path is the right to ask
}
"""Who may ask for what: written down apart from the routes, so that neither changes unseen."""

HOST = "http://localhost:8765"


def routes_of(app: FastAPI) -> list[str]:
    """Everything that the application answers to, also what its document does not tell."""
    found = []
    for each in iter_route_contexts(app.routes):
        assert each.path is not None, each
        assert each.methods, f"{each.path} answers to every method"
        found += [f"{method} {each.path}" for method in each.methods]
    return sorted(found)


def body_for(path: str) -> dict[str, object] | None:
    if path == "/api/v1/jobs":
        return {"name": "x", "entrypoint": "nobody.may"}
    if path == "/api/v1/registered-jobs/{name}":
        return {"entrypoint": "nobody.may"}
    return {} if path.endswith(("/run", "/query", "/mcp", "/backfills")) else None


def test_every_route_has_a_rule_and_every_rule_a_route() -> None:
    assert routes_of(create_app(mcp_write=True)) == sorted(RULES)


def test_each_role_includes_those_before_it() -> None:
    assert [role.may(Role.OPERATOR) for role in Role] == [False, True, True, True, False, False, False]
    assert [Role.AUTHOR.may(role) for role in Role] == [True, True, True, False, False, False, False]


def test_three_roles_stand_outside_the_order() -> None:
    for role in (Role.WORKER, Role.JOIN, Role.REPLICA):
        assert [other for other in Role if role.may(other)] == [other for other in Role if other.may(role)] == [role]


async def test_every_role_on_every_route(client: Client) -> None:
    client.server.state.streams.ending.set()  # streams end at once
    del client.headers["authorization"]
    for rule, needed in RULES.items():
        method, path = rule.split(" ")
        names = {"name": "x", "token": "x" * 43, "kind": "job", "ending": "1"}
        url = HOST + path.format(job_id=1, task_id=1, worker_id=1, backfill_id=1, **names)
        given = body_for(path) if method != "GET" else None
        answer = await client.request(method, url, json=given)
        assert (answer.status_code == 401) == (needed is not None), rule
        for role in Role:
            answer = await client.request(method, url, headers=client.of(role), json=given)
            if needed is None or role.may(needed):
                assert answer.status_code in (200, 400, 404, 406, 422), (rule, role, answer.text)
            else:
                assert "needs the role" in problem_in(answer, 403)["detail"], (rule, role)
    refused = {entry.actor for entry in await list_audit() if entry.outcome == "done"}
    assert "viewer" not in refused
