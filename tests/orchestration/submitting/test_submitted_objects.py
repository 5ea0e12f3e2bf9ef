"""Objects that a job is given live as long as the job needs them, and the user's own as long as he does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from aaiclick.data import create_object_from_value, data_context
from aaiclick.errors import Conflict, InputsGone, ObjectNotFound
from aaiclick.orchestration import ajob_test, create_job, create_task, get_job_result
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.context import Context
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.models import Job
from aaiclick.orchestration.rules.values.run_tables import is_run_table, tables_named
from aaiclick.orchestration.store.tables import table_context_refs, table_pin_refs
from tests.orchestration import data_flows as flows
from tests.support.front_door import local, state
from tests.support.shelf import comments, references, tables, tidy

__all__ = ["local", "state"]

READ = "tests.orchestration.data_flows.read"


async def pinned() -> set[tuple[int, str]]:
    async with connected() as database:
        rows = await database.read(lambda session: session.rows(select(table_pin_refs)))
        return {(row.task_id, row.table_name) for row in rows}


async def test_the_users_object_may_end_before_the_job_begins(local: Path, state: str) -> None:
    async with data_context():
        rows = await create_object_from_value({"a": [3, 1, 2]})
        job = await flows.given.submit(rows.where("a > 1").order_by("a"))
        (copy,) = [table for table in await tables() if table != rows.table]
    assert await tables() == [copy]
    assert json.loads((await comments())[copy])["job_id"] == job.id
    assert await pinned() == {(job.tasks[0].id, copy)}
    ended = await ajob_test(job)
    assert await get_job_result(ended.id) == {"kind": "View", "data": {"a": [2, 3]}}
    await tidy()
    assert await tables() == []
    assert await references() == 0


async def test_what_changes_later_is_not_seen_by_the_job(local: Path) -> None:
    async with data_context():
        rows = await create_object_from_value([1, 2])
        job = await flows.given.submit(rows)
        await rows.insert([3])
        ended = await ajob_test(job)
        assert (await get_job_result(ended.id))["data"] == [1, 2]
        await tidy()
        assert await rows.data() == [1, 2, 3]
        assert await tables() == [rows.table]


async def test_one_table_is_copied_once_however_often_it_is_given(local: Path) -> None:
    async with data_context():
        rows = await create_object_from_value([1, 2])
        tasks = [create_task(READ, {"rows": value}) for value in (rows, rows.where("value > 1"), rows)]
        await create_job("thrice", tasks=tasks)
        (copy,) = {table for task in tasks for table in tables_named(task.kwargs_json)}
        assert is_run_table(copy)
        assert await tables() == [rows.table, copy]
        assert await pinned() == {(task.id, copy) for task in tasks}


async def test_named_objects_are_passed_as_they_are(local: Path) -> None:
    async with data_context():
        prices = await create_object_from_value([1.5], name="prices")
        ended = await ajob_test(await flows.given.submit(prices))
        assert (await get_job_result(ended.id))["data"] == [1.5]
        assert await tables() == [prices.table]
        assert await references() == 0


async def test_an_object_may_be_given_to_a_job_that_exists(local: Path) -> None:
    job = await create_job("begun", tasks=[create_task("tests.orchestration.data_flows.plain")])
    async with data_context():
        rows = await create_object_from_value([7])
        late = await Context(job.id).apply(create_task(READ, {"rows": rows}))
    (copy,) = await tables()
    assert await pinned() == {(late.id, copy)}


async def test_the_result_of_one_job_may_be_given_to_another(local: Path) -> None:
    """The first one's time may be over before the second runs."""
    first = await ajob_test(await flows.holding.submit())
    async with data_context():
        found: Any = await get_job_result(first.id)
        second = await flows.given.submit(found["part"])
    assert len(await tables()) == 2
    ended = await ajob_test(second)
    assert (await get_job_result(ended.id))["data"] == [3]
    await tidy()
    assert len(await tables()) == 1


async def test_an_object_whose_table_is_gone_is_refused_and_leaves_nothing(local: Path) -> None:
    with pytest.raises(ObjectNotFound):
        await create_job("gone", tasks=[create_task(READ, {"rows": {"object_type": "object", "table": "c5_1"}})])
    await tidy()
    assert await references() == 0


async def test_what_a_workflow_returns_itself_is_pinned_for_its_job(local: Path) -> None:
    async with data_context():
        rows = await create_object_from_value([1, 2])
        made = await flows.given_back.submit([rows, rows.where("value > 1")])
        (copy,) = [table for table in await tables() if table != rows.table]
    assert await pinned() == {(made.id, copy)}
    await tidy()
    assert await tables() == [copy]
    async with data_context():
        assert [await each.data() for each in await get_job_result(made.id)] == [[1, 2], [2]]


async def test_a_workflow_that_returns_a_table_which_is_gone_is_refused(local: Path) -> None:
    class Gone:
        def __aaiclick_reference__(self) -> dict[str, str]:
            return {"object_type": "object", "table": "t5_1_1"}

    with pytest.raises(InputsGone, match=r"job [0-9]+ needs t5_1_1"):
        await flows.given_back.submit(Gone())


@pytest.mark.parametrize("mode", ["none", "full"])
async def test_a_submit_that_is_refused_leaves_no_copy(local: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    async def refuse(*_: object) -> Job:
        raise Conflict(what="It", verb="submitted", cause="no", hint="")

    async with data_context():
        rows = await create_object_from_value([1])
        task = create_task(READ, {"rows": rows})
        before = task.kwargs_json
        with monkeypatch.context() as patched:
            patched.setattr(DirectCoordinator, "submit", refuse)
            with pytest.raises(Conflict):
                await create_job("refused", tasks=[task], preservation_mode=mode)
        assert task.kwargs_json == before
        await tidy()
        assert await tables() == [rows.table]
        assert await references() == 0
        await create_job("accepted", tasks=[task], preservation_mode=mode)
        assert len(await pinned()) == 1


async def test_the_same_key_again_leaves_no_second_copy(local: Path) -> None:
    async with data_context():
        rows = await create_object_from_value([1])
        first = await create_job("keyed", READ, kwargs={"rows": rows}, key="once")
        second = await create_job("keyed", READ, kwargs={"rows": rows}, key="once")
        assert second.id == first.id
        await tidy()
        assert len(await tables()) == 2
        assert len(await pinned()) == 1


async def test_copies_follow_the_preservation_of_their_job(local: Path) -> None:
    async with data_context():
        rows = await create_object_from_value([1])
        await create_job("full", READ, kwargs={"rows": rows}, preservation_mode="full")
    async with connected() as database:
        (row,) = await database.read(lambda session: session.rows(select(table_context_refs)))
        assert row.preserved
