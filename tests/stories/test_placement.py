"""Tasks that say where they may run, through real workers: what each gets, and what is told of the others."""

from __future__ import annotations

import asyncio
from pathlib import Path

from aaiclick.orchestration import (
    NodeDescription,
    PlacementConstraints,
    cordon_node,
    create_job,
    create_task,
    get_current_run,
    get_tasks_for_job,
    list_tasks,
    register_worker,
    task,
    wait_for_job,
    why_pending,
    worker_main_loop,
)
from aaiclick.orchestration.models import Job
from tests.support.front_door import local, state

__all__ = ["local", "state"]

W1 = NodeDescription("W1", capabilities={"gpu": None}, executor_types=["python", "x"])
W2 = NodeDescription("W2", capabilities={"gpu": "nvidia"}, executor_types=["python", "x"])


@task
def ran(witness: str) -> None:
    """Write down that this was run, and by whom."""
    run = get_current_run()
    assert run is not None
    with Path(witness).open("a") as file:
        file.write(f"{run.name}\n")


running: list[int] = [0, 0]
"""How many bodies run now, and the most that ever did."""


@task
async def counted() -> None:
    """Let others begin meanwhile, if they may."""
    running[0] += 1
    running[1] = max(running)
    for _ in range(20):
        await asyncio.sleep(0)
    running[0] -= 1


async def work(node: NodeDescription, tasks: int, slots: int = 4) -> None:
    async with asyncio.timeout(90):
        await worker_main_loop(executor="inline", concurrency=slots, max_tasks=tasks, node=node, control=False)


def written(witness: str) -> list[str]:
    return Path(witness).read_text().split()


async def test_only_the_node_that_meets_it_runs_a_task_and_the_others_say_what_they_lack(
    state: str, tmp_path: Path
) -> None:
    """Scenario A8."""
    needs = PlacementConstraints(
        requires_capabilities={"gpu": "nvidia"}, requires_executors=["x", "y"], forbidden_nodes=["W1"]
    )
    witness = str(tmp_path / "witness")
    gpu = ran.options(name="gpu", placement=needs)
    job: Job = await create_job("a8", tasks=[gpu(witness), ran.options(name="plain")(witness)])
    (first, _) = await get_tasks_for_job(job.id)
    await register_worker(node=W1)
    told = await why_pending(first.id)
    assert told.reason == "placement"
    assert [(node.name, [*node.missing]) for node in told.nodes] == [
        ("W1", ["gpu is none, needed is gpu == nvidia", "it is forbidden"])
    ]
    assert [each.id for each in (await list_tasks(blocked="placement")).tasks] == [first.id]
    await work(W1, 1)
    assert written(witness) == ["plain"]
    await work(W2, 1)
    assert (await wait_for_job(job.id, timeout_s=30)).status == "completed"
    assert written(witness) == ["plain", "gpu"]
    assert (await list_tasks(blocked="placement")).tasks == []
    assert [each.name for each in (await list_tasks(node="W2")).tasks] == ["gpu"]


async def test_never_two_at_once_on_a_node_of_what_may_run_once(local: object) -> None:
    """Scenario A9."""
    running[:] = [0, 0]
    path = f"{__name__}.counted"
    job = await create_job("a9", tasks=[create_task(path, placement={"max_parallel_per_node": 1}) for _ in range(3)])
    await work(W1, 3)
    assert (await wait_for_job(job.id, timeout_s=30)).status == "completed"
    assert running == [0, 1]
    free = await create_job("free", tasks=[create_task(path) for _ in range(3)])
    await work(W1, 3)
    assert (await wait_for_job(free.id, timeout_s=30)).status == "completed"
    assert running == [0, 3]


async def test_a_node_that_is_cordoned_gets_nothing_and_others_go_on(local: object) -> None:
    await register_worker(node=W1)
    await cordon_node("W1")
    path = f"{__name__}.counted"
    job = await create_job("closed", tasks=[create_task(path)])
    (only,) = await get_tasks_for_job(job.id)
    assert (await why_pending(only.id)).reason == "draining"
    await work(W2, 1)
    assert (await wait_for_job(job.id, timeout_s=30)).status == "completed"
