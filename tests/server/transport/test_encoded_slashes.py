"""Names with a slash: each route that takes a name can be asked for them."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from aaiclick.orchestration import NodeDescription, create_job, register_worker
from aaiclick.server.transport.encoded_slashes import STAND_IN, with_slashes, with_stand_ins
from tests.orchestration import sample_flows as flows
from tests.server.auth.test_actors import HOST, RULES
from tests.server.conftest import FLOWS, Client, problem_in

NAMES = ["a/b", "/a//b/", "a/run", "a%2Fb", "50%", "a?b#c&d=e", "../a", "ä/ö"]


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (b"/x/a%2Fb", "/x/a/b"),
        (b"/x/a%2fb?%2F", "/x/a/b"),
        (b"/x/%C3%A4%2F", "/x/ä/"),
        (b"/x/a%252Fb", "/x/a%2Fb"),
        (b"/x/a", "/x/a"),
    ],
)
def test_a_slash_that_was_sent_encoded_is_kept_apart(sent: bytes, read: str) -> None:
    decoded: dict[str, Any] = {"path": read, "raw_path": sent}
    path = with_stand_ins(decoded)["path"]
    assert with_slashes(path) == read
    assert path.count("/") == sent.partition(b"?")[0].count(b"/")


def test_other_paths_stay_as_they_are() -> None:
    scopes: list[dict[str, Any]] = [{"path": "/x"}, {"path": "/x", "raw_path": None}]
    for scope in (*scopes, {"path": "/x/\ufffd", "raw_path": b"/x/%ff"}):
        assert with_stand_ins(scope) is scope
    assert with_slashes(5) == 5


@pytest.mark.parametrize("name", NAMES)
async def test_registered_jobs_of_any_name(client: Client, name: str) -> None:
    path = f"/registered-jobs/{quote(name, safe='')}"
    body = {"entrypoint": f"{FLOWS}.add", "default_kwargs": {"a": 1, "b": 2}, "schedule": "0 6 * * *"}
    assert (await client.put(path, json=body)).json()["name"] == name
    assert (await client.get(path)).json()["name"] == name
    assert (await client.post(f"{path}/disable")).json()["enabled"] is False
    assert (await client.post(f"{path}/enable")).json()["enabled"] is True
    assert (await client.post(f"{path}/run", json={})).json()["name"] == name
    assert (await client.get(f"{path}/fires")).json()["fires"] == []
    assert (await client.get(f"{path}/backfills")).json()["backfills"] == []


@pytest.mark.parametrize("name", NAMES)
async def test_nodes_of_any_name(client: Client, name: str) -> None:
    await register_worker(node=NodeDescription(name))
    path = f"/nodes/{quote(name, safe='')}"
    assert (await client.get(path)).json()["name"] == name
    assert (await client.post(f"{path}/cordon")).json()["state"] == "cordoned"
    assert (await client.post(f"{path}/remove", json={"force": True})).json()["name"] == name


async def test_every_route_understands_an_encoded_slash(client: Client) -> None:
    """Or refuses it like any other wrong id: no route takes it for a longer path."""
    job = await create_job("x", flows.add, kwargs={"a": 1, "b": 2})
    for rule in RULES:
        method, path = rule.split()
        if "{name}" in path:
            answer = await client.request(
                method, f"{HOST}{path.replace('{name}', 'no%2Fbody')}", json={"entrypoint": 1}
            )
            assert answer.status_code in (404, 422), (rule, answer.text)
            assert STAND_IN not in answer.text
            assert "Not Found" not in answer.text, rule  # the route was found
    problem_in(await client.get(f"/jobs%2F{job.id}"), 404)
    problem_in(await client.get(f"/jobs/{job.id}%2F"), 422)


async def test_a_slash_opens_no_door_without_a_token(client: Client) -> None:
    for path in ("/callbacks%2Fx", "/callbacks/x%2F..%2Fjobs", "/callbacks/%2e%2e%2fjobs", "/node%2Fclaim"):
        answer = await client.get(path, headers={"Authorization": ""})
        assert answer.status_code in (401, 403, 404, 405), (path, answer.text)
