"""The specification's snippets of this scope, as printed there; where something differs, the test says what and why.

`myapp` stands for the reader's own application: a package that tests/support/myapp.py makes.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from aaiclick.errors import CircularDependencyError
from aaiclick.orchestration import (
    PRESERVATION_FULL,
    PRESERVATION_NONE,
    Context,
    Group,
    JobStatus,
    RunType,
    Task,
    TaskStatus,
    WorkerStatus,
    add_task_to_current_job,
    add_task_to_job,
    ajob_test,
    cancel_job,
    claim_next_task,
    compute_job_stats,
    count_jobs,
    create_job,
    create_task,
    deregister_worker,
    get_current_context,
    get_current_job_id,
    get_dependencies_for_job,
    get_job,
    get_logs_dir,
    get_task,
    get_task_result,
    get_tasks_for_job,
    job,
    list_jobs,
    list_workers,
    print_job_stats,
    register_worker,
    resolve_job_config,
    task,
    worker_heartbeat,
)
from tests.support import warm
from tests.support.front_door import local
from tests.support.myapp import myapp

__all__ = ["local", "myapp"]

BASIC_EXAMPLE = """
from aaiclick.orchestration import job, task, job_test, TaskResult

@task
async def add(a: int, b: int) -> int:
    return a + b

@task
async def multiply(x: int, y: int) -> int:
    return x * y

@job("pipeline")
def pipeline(x: int, y: int):
    sum_result = add(a=x, b=y) # no dependency between tasks → run in parallel
    product = multiply(x=x, y=y)
    return TaskResult(tasks=[sum_result, product])

j = pipeline(x=3, y=4)
job_test(j) # execute synchronously (testing/local)
"""

PRINTED = """\
from aaiclick.orchestration import job, task, job_test, TaskResult
@task
async def add(a: int, b: int) -> int:
return a + b
@task
async def multiply(x: int, y: int) -> int:
return x * y
@job("pipeline")
def pipeline(x: int, y: int):
sum_result = add(a=x, b=y) # no dependency between tasks → run in parallel
product = multiply(x=x, y=y)
return TaskResult(tasks=[sum_result, product])
j = pipeline(x=3, y=4)
job_test(j) # execute synchronously (testing/local)"""

pytestmark = pytest.mark.usefixtures("myapp")


# ---------------------------------------------------------------- 002


def test_002_the_basic_example_runs_as_printed(myapp: Path) -> None:
    """As printed; the printed page has lost its indentation."""
    assert [line.strip() for line in BASIC_EXAMPLE.splitlines() if line] == PRINTED.split("\n")
    (myapp / "basic.py").write_text(BASIC_EXAMPLE + "print(job_test(j).status, job_test(j).result)\n")
    env = {**os.environ, "PYTHONPATH": os.getcwd()}
    done = warm.run(
        [sys.executable, "basic.py"], cwd=myapp, env=env, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "completed [7, 12]\n"


def test_002_the_spellings_of_job() -> None:
    def workflow() -> None: ...

    assert [job("name")(workflow).name, job(name="name")(workflow).name, job(workflow).name] == [
        "name",
        "name",
        "workflow",
    ]


def test_002_task_parameters_and_their_defaults() -> None:
    def work() -> None: ...

    assert (task(work).name, task(name="n", max_retries=2)(work).name) == ("work", "n")
    assert create_task("myapp.module.function").max_retries == 0


async def test_002_job_management() -> None:
    job = await create_job("nightly etl", entry="myapp.module.function")
    assert [one.id for one in await list_jobs(status="PENDING", name_like="%etl%", limit=20, offset=0)] == [job.id]
    assert await count_jobs() == 1
    assert [task.entrypoint for task in await get_tasks_for_job(job.id)] == ["myapp.module.function"]
    assert (await compute_job_stats(job.id)).total_tasks == 1
    await print_job_stats(job.id)
    assert await cancel_job(job.id) is True
    assert await cancel_job(job.id) is False
    cancelled = await get_job(job.id)
    assert cancelled is not None
    assert cancelled.status == "cancelled"


def test_002_the_precedence_of_preservation_modes() -> None:
    assert resolve_job_config() == PRESERVATION_NONE
    assert resolve_job_config(PRESERVATION_FULL) == PRESERVATION_FULL


def test_002_the_status_enums() -> None:
    assert list(JobStatus.__members__) == ["PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"]
    assert list(TaskStatus.__members__)[-3:-1] == ["PENDING_CLEANUP", "UPSTREAM_FAILED"]
    assert list(WorkerStatus.__members__) == ["ACTIVE", "IDLE", "STOPPING", "STOPPED"]
    assert list(RunType.__members__) == ["SCHEDULED", "MANUAL"]


# ---------------------------------------------------------------- 001: jobs


async def test_001_a_job_from_a_callback_string_or_a_task() -> None:
    # Option 1: Create job with callback string
    job = await create_job(name="data_processing_pipeline", entry="myapp.processors.load_and_process_data")
    assert job.total_tasks == 1

    # Option 2: Create task first, then job
    task = create_task(
        callback="myapp.processors.load_and_process_data",
        kwargs={"source": {"object_type": "pyobj", "value": "dataset_v1"}},
    )
    job = await create_job(name="data_processing_pipeline", entry=task)
    assert [one.id for one in await get_tasks_for_job(job.id)] == [task.id]


async def test_001_a_job_on_an_object() -> None:
    """Differs: the reference is stored in 002's form (`table`, not `table_id`); both are accepted."""
    task = create_task(
        callback="myapp.processors.process_data", kwargs={"input": {"object_type": "object", "table_id": "tbl_xyz"}}
    )
    job = await create_job(name="data_pipeline", entry=task)
    assert job.status == "pending"
    assert task.kwargs == {"input": {"object_type": "object", "table": "tbl_xyz"}}


async def test_001_progress_lists_and_cancelling(capsys: pytest.CaptureFixture[str]) -> None:
    job_id = (await create_job(name="data_pipeline", entry="myapp.processors.process_data")).id

    # Get job status
    job = await get_job(job_id)
    assert job is not None
    print(f"Status: {job.status}, Progress: {job.completed_tasks}/{job.total_tasks}")
    assert capsys.readouterr().out == "Status: pending, Progress: 0/1\n"

    # List jobs
    jobs = await list_jobs(status=JobStatus.RUNNING)
    assert jobs == []

    # Cancel job
    await cancel_job(job_id)


def test_001_job_test_blocks_until_the_job_has_ended() -> None:
    """It also returns the job."""
    job = asyncio.run(create_job(name="data_pipeline", entry="myapp.processors.load_and_process_data"))
    finished = job.test()
    assert finished is job
    assert job.status == "completed"


# ---------------------------------------------------------------- 001: graphs


async def test_001_the_context_api() -> None:
    job = await create_job("dag", tasks=[])

    # Create orchestration context for a job
    context = Context(job_id=job.id)

    # Define tasks and groups in memory
    task1 = Task(entrypoint="myapp.func1", kwargs={"a": 1})
    task2 = Task(entrypoint="myapp.func2", kwargs={"b": 2})
    group1 = Group(name="processing")

    # Set up dependencies using operators
    task1 >> task2
    task2.group_id = group1.id

    # Commit tasks, groups, and dependencies to database
    await context.apply(task1)  # Apply single task
    await context.apply([task1, task2, group1])  # Apply multiple tasks/groups

    assert [task.name for task in await get_tasks_for_job(job.id)] == ["func1", "func2"]
    stored = await get_task(task2.id)
    assert stored is not None
    assert (stored.group_id, stored.unmet_count) == (group1.id, 1)


async def test_001_apply_returns_what_it_was_given_and_refuses_cycles() -> None:
    context = Context(job_id=(await create_job("dag", tasks=[])).id)
    extract = Task(entrypoint="myapp.extract", kwargs={})
    transform = Task(entrypoint="myapp.transform", kwargs={})
    load = Task(entrypoint="myapp.load", kwargs={})
    extract >> transform >> load
    items = [extract, transform, load]
    assert await context.apply(items) is items

    again = Task(entrypoint="myapp.extract", kwargs={})
    other = Task(entrypoint="myapp.load", kwargs={})
    again >> other >> again
    with pytest.raises(CircularDependencyError):
        await context.apply([again, other])
    assert len(await get_tasks_for_job(context.job_id or 0)) == 3


async def test_001_the_operators() -> None:
    """Every line of «DAG Construction with Dependency Operators», applied as one graph and run."""
    job = await create_job("dag", tasks=[])
    context = Context(job_id=job.id)

    def make(name: str) -> Task:
        return Task(entrypoint="myapp.process", kwargs={"data": name}, name=name)

    task1, task2, task3, task4, task5 = (make(f"task{number}") for number in range(1, 6))
    task1 >> task2
    task2 >> task3
    task1 >> task2 >> task3  # equivalent chaining: equal edges are one
    task2 << task1  # same as: task1 >> task2

    extract_group, transform_group, load_group = (Group(name=name) for name in ("extract", "transform", "load"))
    extract_group >> transform_group >> load_group
    validation_task, final_report_task = make("validate"), make("report")
    validation_task >> transform_group
    transform_group >> final_report_task

    task1 >> [task4, task5]  # fan-out
    last = make("last")
    [task3, task4, task5] >> last  # fan-in
    [task4, task5] << validation_task

    source_task, transform_task1, transform_task2 = make("source"), make("t1"), make("t2")
    source_task >> extract_group >> [transform_task1, transform_task2]
    [transform_task1, transform_task2] >> load_group >> last

    inside = make("inside")
    inside.group_id = transform_group.id
    await context.apply([source_task, extract_group, transform_task1, transform_task2, load_group, last])
    await context.apply(transform_group)

    edges = {(edge.previous_id, edge.next_id) for edge in await get_dependencies_for_job(job.id)}
    assert (task1.id, task2.id) in edges
    assert (extract_group.id, transform_group.id) in edges
    assert (validation_task.id, task4.id) in edges
    assert (transform_task2.id, load_group.id) in edges
    finished = await ajob_test(job)
    assert finished.status == "completed"
    assert "inside" in {task.name for task in finished.tasks}


def test_001_two_lists_are_refused() -> None:
    """The specification does not say what `[a, b] >> [c, d]` means: Python itself refuses it."""
    a, b = Task(entrypoint="myapp.func1"), Task(entrypoint="myapp.func2")
    with pytest.raises(TypeError):
        [a] >> [b]  # type: ignore[operator]  # noqa: B018


# ---------------------------------------------------------------- 000 and 001: tasks and workers


async def test_000_a_job_from_a_list_of_dicts() -> None:
    # Create job with initial task
    job = await create_job(
        name="data_processing_pipeline",
        tasks=[{"entrypoint": "myapp.processors.load_and_process_data", "kwargs": {"source": "dataset_v1"}}],
    )
    finished = await ajob_test(job)
    assert await get_task_result(finished.tasks[0].id) == "loaded dataset_v1"


async def test_000_listing_by_a_status_in_words() -> None:
    job = await create_job(name="pipeline", tasks=[{"entrypoint": "myapp.module.function"}])
    await claim_next_task((await register_worker(hostname="worker-01", pid=12345)).id)
    jobs = await list_jobs(status="running")
    assert [one.id for one in jobs] == [job.id]


async def test_000_adding_a_task_and_reading_it() -> None:
    """Differs: the text "tbl_xyz" stays a text; an Object is passed as a reference (001) or as itself."""
    job = await create_job("grows", tasks=[])

    # Add task to existing job
    task = await add_task_to_job(job_id=job.id, entrypoint="myapp.process", kwargs={"data": "tbl_xyz"})

    # Get task details
    found = await get_task(task.id)
    assert found is not None
    assert (found.job_id, found.status, found.error_message, found.retry_count) == (job.id, "pending", None, 0)


async def test_000_the_current_job() -> None:
    job = await create_job("grows", tasks=[])
    async with Context(job_id=job.id) as ctx:
        job_id = get_current_job_id()
        assert get_current_context() is ctx
        task = await add_task_to_current_job(job_id=job_id, entrypoint="myapp.process", kwargs={"data": 1})
        await add_task_to_current_job(entrypoint="myapp.process", kwargs={"data": 2})
    assert task.job_id == job.id


async def test_000_and_001_worker_management() -> None:
    """Differs: a worker's id is a number of its own, one for each session, not `host:pid:time`."""
    # Register worker
    worker = await register_worker(hostname="worker-01", pid=12345)
    assert isinstance(worker.id, int)

    # Heartbeat (periodic)
    await worker_heartbeat(worker.id)

    # List active workers
    assert [one.id for one in await list_workers(status="active")] == [worker.id]
    assert [one.id for one in await list_workers(status=WorkerStatus.ACTIVE)] == [worker.id]

    # Deregister
    await deregister_worker(worker.id)
    assert list(await list_workers(status=WorkerStatus.ACTIVE)) == []


async def test_000_claiming_by_hand() -> None:
    """Differs: what is claimed is a Claim with all that a runner needs; `task.id` and `task.kwargs` are its task's."""
    worker = await register_worker()
    assert await claim_next_task(worker.id) is None
    job = await create_job("one", entry="myapp.module.function")
    claim = await claim_next_task(worker.id)
    assert claim is not None
    assert (claim.job_id, claim.entrypoint) == (job.id, "myapp.module.function")
    task = await get_task(claim.task_id)
    assert task is not None
    assert task.status == "claimed"


def test_001_the_log_directory() -> None:
    assert Path(get_logs_dir()).is_dir()


def test_001_ids_exist_from_construction() -> None:
    group = Group(name="processing")
    inner = Group(name="inner", parent_group_id=group.id)
    task = Task(entrypoint="myapp.func2", kwargs={})
    task.group_id = inner.id
    assert len({group.id, inner.id, task.id}) == 3
    assert all(0 < node.id < 2**63 for node in (group, inner, task))
    assert [node.name for node in group.child_groups] == ["inner"]
    assert inner.tasks == [task]
