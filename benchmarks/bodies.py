"""Bodies for tasks that benchmarks submit."""

import time

from aaiclick.orchestration import Task, task


def noop(**_: object) -> None:
    return None


async def nothing(**_: object) -> None:
    return None


async def tell_time() -> float:
    return time.time()


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def expands(count: int) -> list[Task]:
    """As many tasks as are asked for, all of them returned."""
    return [Task("benchmarks.bodies.noop", {"x": 1}) for _ in range(count)]


@task
def marked(x: int) -> int:
    """As those that are submitted from outside must be."""
    return x
