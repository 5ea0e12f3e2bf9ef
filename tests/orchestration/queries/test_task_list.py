"""What may be asked of lists of tasks."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.errors import InputError
from aaiclick.orchestration import create_job, create_task, list_tasks
from tests.support.front_door import local, state

__all__ = ["local", "state"]


@pytest.mark.usefixtures("local")
async def test_tasks_are_listed_and_those_that_no_node_may_run() -> None:
    tasks = [
        create_task("textwrap.dedent", {"text": "x"}, name=name, placement=where)
        for name, where in (("a", None), ("b", "gpu == x"))
    ]
    await create_job("j", tasks=tasks)
    assert [task.name for task in (await list_tasks("pending")).tasks] == ["b", "a"]
    assert [task.name for task in (await list_tasks(blocked="placement")).tasks] == ["b"]
    assert [task.name for task in (await list_tasks(lane=0)).tasks] == ["a"]


@pytest.mark.usefixtures("local")
@pytest.mark.parametrize(
    "given",
    [{"status": "x"}, {"lane": -1}, {"lane": True}, {"blocked": "x"}, {"node": ""}, {"name_like": ""}, {"limit": 0}],
)
async def test_what_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        await list_tasks(**given)
