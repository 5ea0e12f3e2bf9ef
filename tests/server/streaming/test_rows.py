"""Whole Objects as streams of Arrow."""

from __future__ import annotations

import pyarrow as pa
import pytest

from aaiclick.client.verbs.objects import END
from aaiclick.data import col, create_object_from_value, data_context
from aaiclick.orchestration import create_job
from aaiclick.server.streaming import rows
from tests.orchestration.sample_flows import add
from tests.server.conftest import Client, problem_in


async def table_of(client: Client, name: str) -> pa.Table:
    answer = await client.get(f"/objects/{name}/arrow")
    assert (answer.status_code, answer.headers["content-type"]) == (200, rows.MEDIA_TYPE)
    assert answer.content.endswith(END)
    return pa.ipc.open_stream(answer.content).read_all()


async def test_all_rows_in_their_order_and_none(client: Client) -> None:
    async with data_context():
        await create_object_from_value(range(200_000), name="many", order=True)
        await create_object_from_value({"n": [1], "at": ["x"]}, name="one")
        empty = await create_object_from_value([1], name="few")
        await empty.where(col("value") > 1).materialize("none")
    assert (await table_of(client, "many")).column(0).to_pylist() == list(range(200_000))
    assert (await table_of(client, "one")).to_pydict() == {"n": [1], "at": ["x"]}
    none = await table_of(client, "none")
    assert (none.num_rows, none.num_columns) == (0, 1)
    problem_in(await client.get("/objects/nothing/arrow"), 404)


@pytest.mark.parametrize("path", ["/jobs/{job}/result/arrow", "/jobs/{job}/result?exact=true"])
async def test_a_job_without_a_result(client: Client, path: str) -> None:
    job = await create_job("waits", add(1, 2))
    problem_in(await client.get(path.format(job=job.id)), 409)
    problem_in(await client.get(path.format(job=12345)), 404)
