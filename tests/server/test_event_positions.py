"""`min_seq` and the header of positions, at a server that has the database."""

from __future__ import annotations

import httpx
import pytest

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.roles import Role
from aaiclick.server.event_positions import without_min_seq
from tests.support.front_door import local
from tests.support.node_server import node_server

__all__ = ["local"]


def asked(query: bytes) -> tuple[bytes, int | None]:
    scope, seq = without_min_seq({"type": "http", "query_string": query})
    return scope["query_string"], seq


def test_the_parameter_is_taken_out_and_read() -> None:
    assert asked(b"limit=5&min_seq=12&status=failed") == (b"limit=5&status=failed", 12)
    assert asked(b"min_seq=0") == (b"", 0)
    assert asked(b"limit=5") == (b"limit=5", None)
    assert asked(b"name=min_seq") == (b"name=min_seq", None)


@pytest.mark.parametrize("query", [b"min_seq=", b"min_seq=-1", b"min_seq=1.5", b"min_seq=1&min_seq=1"])
def test_what_is_no_event_is_refused(query: bytes) -> None:
    with pytest.raises(InputError, match="min_seq"):
        asked(query)


async def test_an_event_beyond_the_newest_is_refused(migrated_sql_url: str) -> None:
    async with node_server(migrated_sql_url, Role.VIEWER) as server:
        headers = {"Authorization": f"Bearer {server.tokens['viewer']}"}
        async with httpx.AsyncClient(base_url=server.url, headers=headers) as client:
            answers = [await client.get("/api/v1/jobs", params={"min_seq": seq}) for seq in (0, 1)]
    assert [answer.status_code for answer in answers] == [200, 412]
    assert answers[1].json()["code"] == "not_yet_here"
