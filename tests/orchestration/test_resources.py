"""What can be asked of resources and changed, what is refused, and what `task why` says of them."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.errors import InputError, NotFound
from aaiclick.orchestration import (
    NodeDescription,
    create_job,
    create_task,
    get_current_run,
    get_registered_job,
    get_tasks_for_job,
    list_resources,
    register_job,
    register_worker,
    remove_resource,
    run_job,
    set_resource,
    task,
    wait_for_job,
    why_pending,
    worker_main_loop,
)
from aaiclick.orchestration.models import Job
from tests.support.front_door import local, state

__all__ = ["local", "state"]

BOX = NodeDescription("box", resources={"gpu": 2, "gpu_memory_mb": 10_000, "cpu": 2})


@task(resources={"gpu": 1, "gpu_memory_mb": 6_000, "licence:a": 1})
def told() -> dict[str, Any]:
    """Return what this run was granted."""
    return dict(get_current_run().resources)


async def work(tasks: int, node: NodeDescription = BOX, slots: int = 4) -> None:
    await worker_main_loop(executor="inline", concurrency=slots, max_tasks=tasks, node=node, control=False)


@pytest.mark.usefixtures("local")
async def test_a_capacity_of_all_from_its_first_setting_to_its_end() -> None:
    assert await list_resources() == []
    unit = await set_resource("licence:abaqus", 5)
    assert (unit.name, unit.node, unit.size, unit.free, unit.holders) == ("licence:abaqus", None, 5, 5, [])
    await register_worker(node=BOX)
    found = await list_resources()
    assert [(each.name, each.node, each.slot) for each in found] == [
        ("licence:abaqus", None, 0),
        ("cpu", "box", 0),
        ("gpu", "box", 0),
        ("gpu", "box", 1),
    ]
    assert [each.memory_mb for each in await list_resources("gpu", node="box")] == [10_000, 10_000]
    first = await list_resources(limit=3)
    assert await list_resources(after=first[-1].place) == found[3:]
    await remove_resource("licence:abaqus")
    assert await list_resources("licence:abaqus") == []


REFUSED = [
    (set_resource, ("a b", 1), "letters"),
    (set_resource, ("", 1), "resource"),
    (set_resource, ("gpu", 1), "of machines"),
    (set_resource, ("cpu", 1), "worker start --resource"),
    (set_resource, ("seat", -1), "from 0 to"),
    (set_resource, ("seat", "many"), "must be a number"),
    (set_resource, ("seat", float("nan")), "must be a number"),
    (set_resource, ("seat", 0.0001), "three decimals"),
    (remove_resource, ("memory_mb",), "of machines"),
    (list_resources, ("a b",), "letters"),
]


@pytest.mark.usefixtures("local")
@pytest.mark.parametrize(("ask", "given", "rule"), REFUSED, ids=lambda value: str(value)[:20])
async def test_bad_input_is_refused_in_one_line(ask: Any, given: tuple[Any, ...], rule: str) -> None:
    with pytest.raises(InputError, match=rule) as refused:
        await ask(*given)
    assert "\n" not in str(refused.value)
    assert await list_resources() == []


@pytest.mark.usefixtures("local")
async def test_there_is_no_such_capacity() -> None:
    with pytest.raises(NotFound, match="aaiclick resource list"):
        await remove_resource("seat")
    with pytest.raises(InputError, match="next"):
        await list_resources(after="seat")


@pytest.mark.usefixtures("local")
async def test_a_body_is_told_what_it_was_granted_and_frees_it() -> None:
    await set_resource("licence:a", 1)
    job: Job = await create_job("j", tasks=[told(), told()])
    await work(2)
    done = await wait_for_job(job.id)
    assert done.status == "completed"
    given = [each.result["value"] for each in await get_tasks_for_job(job.id)]
    assert given == [{"gpu": [0], "gpu_memory_mb": 6_000, "licence:a": 1}] * 2
    assert all(unit.free == unit.size for unit in await list_resources())


@pytest.mark.usefixtures("local")
async def test_why_says_what_is_wanted_what_is_free_and_who_holds_the_rest() -> None:
    job: Job = await create_job("j", tasks=[told.options(name="first")()])
    (waiting,) = await get_tasks_for_job(job.id)
    worker = await register_worker(node=BOX)
    said = await why_pending(waiting.id)
    assert (said.reason, said.line.split(": ", 1)[1][:9]) == ("resources", "gpu 0 on ")
    assert said.line.endswith("nobody has licence:a")
    await set_resource("licence:a", 1)
    assert (await why_pending(waiting.id)).reason == "in_line"
    from aaiclick.orchestration.connections import connected
    from aaiclick.orchestration.coordinator.direct import DirectCoordinator

    async with connected() as database:
        (claim,) = await DirectCoordinator(database).claim(worker.id, limit=1, lanes=None, begins=1)
        second: Job = await create_job("k", tasks=[told.options(name="second")()])
        (waiting,) = await get_tasks_for_job(second.id)
        said = await why_pending(waiting.id)
    assert said.reason == "resources"
    assert f"licence:a has 0 of 1 free (held by task {claim.task_id} 'first')" in said.line
    assert [unit.name for unit in said.resources] == ["licence:a", "gpu", "gpu"]
    never: Job = await create_job("l", tasks=[told.options(name="never", resources={"gpu": 3})()])
    (waiting,) = await get_tasks_for_job(never.id)
    said = await why_pending(waiting.id)
    assert (said.reason, said.nodes[0].missing) == ("placement", ["it has 2 GPUs for gpu=3, needed are 3"])


@pytest.mark.usefixtures("local")
async def test_every_door_refuses_what_cannot_be_asked_for() -> None:
    bad: dict[str, Any] = {"gpu": 1.5}
    for ask in (
        lambda: task(resources=bad)(len),
        lambda: told.options(resources=bad),
        lambda: create_task("m.f", resources=bad),
    ):
        with pytest.raises(InputError, match="gpu must be a whole number"):
            ask()
    with pytest.raises(InputError, match="gpu must be a whole number"):
        await create_job("j", tasks=[{"entrypoint": "m.f", "resources": bad}])
    with pytest.raises(InputError, match="gpu must be a whole number"):
        await register_job("r", told, resources=bad)


@pytest.mark.usefixtures("local")
async def test_a_registered_job_says_it_for_its_runs() -> None:
    entry = await register_job("r", told, resources={"cpu": 2})
    assert entry.resources == {"cpu": 2}
    again = await get_registered_job("r")
    assert again is not None
    assert (again.resources, again.placement) == ({"cpu": 2}, None)
    await set_resource("licence:a", 1)
    job: Job = await run_job("r")
    await work(1)
    assert (await wait_for_job(job.id)).status == "completed"
    (ran,) = await get_tasks_for_job(job.id)
    assert ran.result["value"] == {"cpu": 2, "gpu": [0], "gpu_memory_mb": 6_000, "licence:a": 1}
