"""Tasks that go by the node of their last attempt, or of their inputs, through real workers on two nodes."""

from __future__ import annotations

from aaiclick.orchestration import (
    NodeDescription,
    PlacementConstraints,
    RetryPolicy,
    create_job,
    deregister_worker,
    get_tasks_for_job,
    register_worker,
    task,
    wait_for_job,
    why_pending,
    worker_main_loop,
)
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.models import Job, Task
from aaiclick.orchestration.store.reading.nodes import node_of_worker
from tests.support.front_door import local, state

__all__ = ["local", "state"]

A, B = NodeDescription("A"), NodeDescription("B")
here = [""]
"""The node whose worker runs: one at a time does."""

ran: list[tuple[str, str]] = []
"""What was run, and where."""


@task
def made(name: str) -> str:
    ran.append((name, here[0]))
    return name


@task
def used(name: str, given: str) -> str:
    ran.append((name, here[0]))
    return given


@task
def fails_on_a(name: str, times: int) -> None:
    ran.append((name, here[0]))
    if len([each for each in ran if each[0] == name]) <= times:
        raise ValueError("no disk here")


async def work(node: NodeDescription, tasks: int) -> None:
    here[0] = node.name
    await worker_main_loop(executor="inline", concurrency=1, max_tasks=tasks, node=node, control=False)


def says(patience_s: float = 600, **wishes: str) -> PlacementConstraints:
    return PlacementConstraints(max_parallel_per_node=None, patience_s=patience_s, **wishes)  # type: ignore[arg-type]


async def retried(placement: PlacementConstraints) -> tuple[Job, Task]:
    """A task whose first attempt has failed on A."""
    ran.clear()
    said = fails_on_a.options(placement=placement, retry=RetryPolicy(1, delay_s=0))
    job: Job = await create_job("j", tasks=[said("t", 1)])
    await work(A, 1)
    assert ran == [("t", "A")]
    return job, (await get_tasks_for_job(job.id))[0]


async def add_plain() -> None:
    """Later tasks that any worker may run: once it has taken the first, an older one would come before the second."""
    await create_job("plain", tasks=[made("plain"), made("plain")])


async def test_what_failed_on_a_node_runs_on_another(state: str) -> None:
    job, only = await retried(says(retry_node="other"))
    other, same = await register_worker(node=B), await register_worker(node=A)
    told = await why_pending(only.id)
    assert {node.name: node.later for node in told.nodes} == {
        "A": "the last attempt failed here, and other nodes may run it",
        "B": "",
    }
    await add_plain()
    await work(A, 2)
    await work(B, 1)
    assert (await wait_for_job(job.id, timeout_s=60)).status == "completed"
    assert ran == [("t", "A"), *[("plain", "A")] * 2, ("t", "B")]
    for worker in (other, same):
        await deregister_worker(worker.id)
    async with connected() as database:
        last = (await get_tasks_for_job(job.id))[0].worker_id or 0
        where = await database.read(lambda session: node_of_worker(session, last))
    assert where is not None
    assert where.name == "B"


async def test_where_there_is_no_other_node_it_runs_there_again_and_why_says_so(local: object) -> None:
    job, only = await retried(says(patience_s=0.2, retry_node="other"))
    worker = await register_worker(node=A)
    told = await why_pending(only.id)
    assert told.reason == "wished"
    assert "A (the last attempt failed here; since no other node may run it, it takes the task" in told.line
    await work(A, 1)
    assert (await wait_for_job(job.id, timeout_s=60)).status == "completed"
    await deregister_worker(worker.id)


async def test_another_attempt_waits_for_the_node_of_the_one_before(local: object) -> None:
    job, only = await retried(says(retry_node="same"))
    worker = await register_worker(node=B)
    told = await why_pending(only.id)
    assert (told.reason, [node.later for node in told.nodes if node.name == "B"]) == (
        "wished",
        ["node A ran the last attempt; it takes the task once that has waited for 600 s"],
    )
    await add_plain()
    await work(B, 2)
    await work(A, 1)
    assert (await wait_for_job(job.id, timeout_s=60)).status == "completed"
    assert ran == [("t", "A"), *[("plain", "B")] * 2, ("t", "A")]
    await deregister_worker(worker.id)


async def test_if_that_node_is_gone_another_takes_it_after_a_while(local: object) -> None:
    job, _ = await retried(says(patience_s=0.2, retry_node="same"))
    await work(B, 1)
    assert (await wait_for_job(job.id, timeout_s=60)).status == "completed"
    assert ran == [("t", "A"), ("t", "B")]


async def test_a_task_runs_where_its_input_was_made(local: object) -> None:
    ran.clear()
    job: Job = await create_job("j", tasks=[used.options(placement=says(near="inputs"))("use", made("input"))])
    await work(B, 1)
    await add_plain()
    await work(A, 2)
    await work(B, 1)
    assert (await wait_for_job(job.id, timeout_s=60)).status == "completed"
    assert ran == [("input", "B"), *[("plain", "A")] * 2, ("use", "B")]
