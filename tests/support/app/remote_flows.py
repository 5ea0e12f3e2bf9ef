"""Bodies that call the front door from a machine without a database."""

from __future__ import annotations

from aaiclick import create_job, job, task
from aaiclick.errors import NoDatabase
from aaiclick.orchestration import get_job_result, list_jobs, orch_context, wait_for_job
from aaiclick.orchestration.execution.runs.current import get_current_run


@task
def double(x: int) -> int:
    return 2 * x


@job("doubles")
def doubles(count: int) -> list[int]:
    return [double(number) for number in range(count)]


async def submits(count: int) -> object:
    """A job of its own, waited for, and its result."""
    made = await doubles.submit(count)
    await wait_for_job(made.id)
    return await get_job_result(made)


def submits_blocking(count: int) -> object:
    """The same, by a function that cannot await."""
    return doubles(count).wait().result


async def applies(count: int) -> object:
    """More for its own job, and for one that it made."""
    made = await create_job("made", tasks=[])  # it waits for some
    async with orch_context(made.id) as context:
        await context.apply([double(number) for number in range(count)])
    async with orch_context() as own:
        await own.apply(double(7))
    return made.id


async def asks_for_more() -> str:
    """What a server does not give to the bodies of a node."""
    try:
        await list_jobs()
    except NoDatabase as error:
        return str(error)
    return "listed"


async def looks_at(job_id: int) -> str:
    """A job of somebody else."""
    try:
        await get_job_result(job_id)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"read by {get_current_run().task_id}"
