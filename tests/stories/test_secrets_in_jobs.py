"""Secrets on their way through workflows, operators and the catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from aaiclick.errors import ValueExposed
from aaiclick.orchestration import (
    Secret,
    ajob_test,
    clear_task,
    create_job,
    create_task,
    get_job_result,
    get_registered_job,
    get_tasks_for_job,
    job,
    register_job,
    run_job,
)
from aaiclick.orchestration.operators import map as map_rows
from aaiclick.telemetry import masks
from tests.support import secretive
from tests.support.front_door import local
from tests.support.secretive import VARIABLE

__all__ = ["local"]

VALUE = "a value of 21 letters"
SECRET = Secret(f"env:{VARIABLE}")


@pytest.fixture(autouse=True)
def variable(monkeypatch: pytest.MonkeyPatch, local: object) -> Iterator[None]:
    monkeypatch.setenv(VARIABLE, VALUE)
    masks.forget_all()
    yield
    masks.forget_all()


@job
def lengths(secret: Any) -> Any:
    return map_rows(secretive.with_login, [1, 2, 3], kwargs={"secret": secret})


async def test_an_operator_hands_a_secret_on_to_the_tasks_that_need_it() -> None:
    done = await ajob_test(lengths, secret=SECRET)
    assert done.status == "completed", done.error
    texts = [task.kwargs_json for task in await get_tasks_for_job(done.id)]
    assert sum(f"env:{VARIABLE}" in text for text in texts) >= 2  # the one that expands, and its parts
    assert not any(VALUE in text for text in texts)


async def test_a_registered_job_keeps_the_reference_and_its_tasks_get_the_value() -> None:
    await register_job("nightly", secretive.with_a_login, default_kwargs={"secret": SECRET})
    entry = await get_registered_job("nightly")
    assert entry is not None
    assert entry.default_kwargs == {"secret": SECRET}
    done = await ajob_test(await run_job("nightly"))
    assert (done.status, await get_job_result(done.id)) == ("completed", len(VALUE))


async def test_data_that_looks_like_a_secret_is_data() -> None:
    task = create_task(secretive.length, {"secret": f"env:{VARIABLE}"})
    done = await ajob_test(await create_job("plain", task))
    assert await get_job_result(done.id) == len(f"env:{VARIABLE}")


async def test_after_a_variable_was_missing_the_task_can_be_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)
    task = create_task(secretive.length, {"secret": SECRET}, max_retries=3)
    failed = await ajob_test(await create_job("missing", task))
    (row,) = await get_tasks_for_job(failed.id)
    assert (failed.status, row.attempt) == ("failed", 1)
    assert VARIABLE in (row.error or "")
    monkeypatch.setenv(VARIABLE, VALUE)
    await clear_task(task.id)
    done = await ajob_test(failed)
    assert (done.status, await get_job_result(done.id)) == ("completed", len(VALUE))


async def test_what_this_process_has_resolved_is_not_stored_by_any_way_in() -> None:
    masks.remember([VALUE])
    with pytest.raises(ValueExposed, match="Task"):
        await create_job("leak", create_task(secretive.length, {"secret": VALUE}))
    with pytest.raises(ValueExposed, match="job"):
        await create_job(VALUE, create_task(secretive.length, {"secret": SECRET}))
    with pytest.raises(ValueExposed, match="default_kwargs"):
        await register_job("leak", secretive.length, default_kwargs={"secret": VALUE})
    with pytest.raises(ValueExposed, match="Task"):
        await run_job("leak", secretive.length, kwargs={"secret": VALUE})
