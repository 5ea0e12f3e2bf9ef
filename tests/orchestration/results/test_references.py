"""Results that refer to Objects: opened in a data context, references elsewhere."""

from __future__ import annotations

from pathlib import Path

from aaiclick.data import Object, View, data_context
from aaiclick.orchestration import ajob_test, get_job_result, get_task_result
from aaiclick.orchestration.results.references import key_of, opened_here
from tests.orchestration import data_flows as flows
from tests.support.front_door import local

__all__ = ["local"]


async def test_in_a_data_context_the_objects_of_a_result_are_opened(local: Path) -> None:
    ended = await ajob_test(await flows.holding.submit())
    assert ended.status == "completed", ended.error
    told = await get_job_result(ended)
    assert told["whole"]["object_type"] == "object"
    async with data_context():
        found = await get_job_result(ended)
        assert isinstance(found["whole"], Object)
        assert isinstance(found["part"], View)
        assert await found["whole"].data() == [1, 2, 3]
        assert await found["part"].data() == [3]
        (made,) = [task for task in ended.tasks if task.name == "whole_and_part"]
        assert await (await get_task_result(made.id))["whole"].count() == 3


async def test_nothing_is_opened_where_nothing_refers_to_objects(local: Path) -> None:
    assert await opened_here([None, "null", '{"object_type":"pyobj","value":{"a":1}}']) is None


def test_the_same_reference_has_the_same_key() -> None:
    assert key_of("object", {"a": 1, "b": 2}) == key_of("object", {"b": 2, "a": 1})
