"""The document of the interface: every answer of every route is in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aaiclick.server.app import create_app
from aaiclick.server.openapi import document
from tests.server.conftest import Client

METHODS = ("get", "post", "put", "delete")


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    paths = document(create_app())["paths"]
    return [
        (method, path, facts) for path, each in paths.items() for method, facts in each.items() if method in METHODS
    ]


@pytest.mark.parametrize(("method", "path", "facts"), operations(), ids=lambda each: str(each)[:40])
def test_every_route_tells_its_answers(method: str, path: str, facts: dict[str, Any]) -> None:
    answers = facts["responses"]
    assert facts["summary"]
    assert facts["description"]
    assert any(status.startswith("2") for status in answers)
    if not path.endswith("z"):
        assert {"401", "403", "413", "422", "500", "503"} <= answers.keys()
        assert facts.get("security") == (None if "{token}" in path else [{"HTTPBearer": []}])
    if "{" in path and method == "get":
        assert "404" in answers
    if "requestBody" in facts:
        assert "400" in answers
    for status, told in answers.items():
        assert told["description"]
        if status >= "4":
            assert list(told["content"]) == ["application/problem+json"]


def test_every_reference_leads_somewhere() -> None:
    whole = document(create_app())
    text = json.dumps(whole)
    for name in set(text.split('"#/components/schemas/')[1:]):
        assert name.partition('"')[0] in whole["components"]["schemas"]


async def test_the_document_is_served(client: Client) -> None:
    served = await client.get("/openapi.json")
    assert served.json() == document(create_app())
