"""The basic example: two tasks that run in parallel.

Run it with: python -m aaiclick.orchestration.examples.orchestration_basic
"""

from aaiclick.orchestration import TaskResult, job, job_test, task


@task
async def add(a: int, b: int) -> int:
    return a + b


@task
async def multiply(x: int, y: int) -> int:
    return x * y


@job("pipeline")
def pipeline(x: int, y: int) -> TaskResult:
    sum_result = add(a=x, b=y)  # no dependency between tasks → run in parallel
    product = multiply(x=x, y=y)
    return TaskResult(tasks=[sum_result, product])


if __name__ == "__main__":
    j = pipeline(x=3, y=4)
    finished = job_test(j)
    print(finished.status, finished.result)  # noqa: T201
