"""How far groups are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aaiclick.errors import InputError, NotFound
from aaiclick.orchestration import Group, ajob_test, create_job, create_task, get_group_progress, get_groups_for_job
from tests.orchestration import operator_flows as flows
from tests.support.front_door import local, state

__all__ = ["local", "state"]


async def test_tasks_inside_are_counted_at_any_depth(local: Path, state: str) -> None:
    with Group("outer") as outer:
        first = create_task(flows.double, {"x": 1})
        with Group("inner") as inner:
            second = create_task("json.loads", {"s": "nonsense"})
            third = create_task(flows.double, {"x": 2})
    second >> third
    job = await create_job("counted", tasks=[outer, create_task(flows.double, {"x": 3})])
    before = await get_group_progress(outer.id)
    assert (before.name, before.total, before.pending, before.by_status) == ("outer", 3, 3, {"pending": 3})
    await ajob_test(job)
    after = await get_group_progress(outer.id)
    assert after.by_status == {"completed": 1, "failed": 1, "upstream_failed": 1}
    assert (after.completed, after.failed, after.pending, after.running, after.cancelled) == (1, 2, 0, 0, 0)
    assert (await get_group_progress(inner.id)).total == 2
    assert first.id


async def test_an_expansion_is_seen_as_counts(local: Path) -> None:
    ended = await ajob_test(await flows.returned_group.submit(10))
    by_name = {group.name: group.id for group in await get_groups_for_job(ended.id)}
    progress = await get_group_progress(by_name["map double"])
    assert (progress.total, progress.completed) == (6, 6)
    assert (await get_group_progress(by_name["parts"])).completed == 4


@pytest.mark.parametrize(("group_id", "error"), [(12345, NotFound), (0, InputError), ("x", InputError)])
async def test_no_such_group(local: Path, group_id: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        await get_group_progress(group_id)
