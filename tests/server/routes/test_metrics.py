"""Metrics where monitoring looks for them."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from tests.server.conftest import Client, problem_in

WHERE = "http://localhost:8765/metrics"


async def test_prometheus_reads_them(client: Client) -> None:
    answer = await client.get(WHERE, headers=client.of("viewer"))
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert list(text_string_to_metric_families(answer.text))


async def test_they_need_a_token(client: Client) -> None:
    del client.headers["authorization"]
    problem_in(await client.get(WHERE), 401)
