"""What the server is asked with."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from aaiclick.server import request_models
from tests.server.conftest import FLOWS, Client

KINDS = [
    kind
    for kind in vars(request_models).values()
    if isinstance(kind, type) and issubclass(kind, BaseModel) and kind.__module__ == request_models.__name__
]


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_fields_are_refused_everywhere(kind: type[BaseModel]) -> None:
    with pytest.raises(ValidationError, match="nobody_knows"):
        kind(nobody_knows=1)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (request_models.JobsQuery, {"limit": 0}),
        (request_models.JobsQuery, {"limit": 1001}),
        (request_models.JobsQuery, {"before": "٣"}),
        (request_models.LogsQuery, {"offset": 2**63}),
        (request_models.LogsQuery, {"epoch": -1}),
        (request_models.Clear, {"dry_run": "yes"}),
        (request_models.SubmitJob, {"name": "x", "entrypoint": "a.b", "priority": 1.5}),
    ],
)
def test_what_is_out_of_range_or_of_another_type(kind: type[BaseModel], given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        kind(**given)


@pytest.mark.parametrize("seconds", ["1e308", "1000000000000", "0", "-1", "1e9", "NaN", "Infinity"])
async def test_seconds_have_an_end(client: Client, seconds: str) -> None:
    """At every door the range is told."""
    headers = {"Content-Type": "application/json"}
    given = f'"entrypoint": "{FLOWS}.nothing", "timeout_s": {seconds}}}'
    for method, path, body in (
        ("POST", "/jobs", '{"name": "x", ' + given),
        ("PUT", "/registered-jobs/x", "{" + given),
    ):
        answer = await client.request(method, path, content=body, headers=headers)
        assert answer.status_code in (400, 422), answer.text
        assert "timeout_s" in answer.text
    assert (await client.get("/jobs")).json()["jobs"] == []
