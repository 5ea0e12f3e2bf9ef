"""Workflows that tests register: module-level functions, as a worker would import them."""

from __future__ import annotations

from datetime import datetime

from aaiclick.orchestration import PlacementConstraints, RetryPolicy, TaskResult, job, task


@task(name="with care", max_retries=3, timeout_s=9, priority=4, critical=False)
async def careful() -> int:
    return 7


@task
async def double(x: int) -> int:
    return 2 * x


@task(executor="shell")
def listing() -> list[str]:
    return ["ls"]


def plain(x: int = 1, y: int = 2) -> int:
    """Not decorated: a valid entrypoint all the same."""
    return x + y


def needs(x: int) -> int:
    return x


async def tells_its_time(day: datetime, label: str = "") -> str:
    return f"{label}{day.isoformat()}"


async def tells_its_interval(start: datetime, end: datetime) -> list[str]:
    return [start.isoformat(), end.isoformat()]


async def fails_on_odd_days(day: datetime) -> int:
    if day.day % 2:
        raise ValueError("odd")
    return day.day


@job("nightly", priority=7, timeout_s=3600, fail_fast=True, preservation_mode="FULL")
def nightly(x: int = 3) -> TaskResult:
    return TaskResult(tasks=[double(x=x), double(x=x + 1)])


@job
def single(x: int) -> int:
    return double(x=x)


@task(
    name="shown",
    retry=RetryPolicy(2, delay_s=1),
    timeout_s=9.5,
    priority=4,
    critical=False,
    placement=PlacementConstraints(requires_capabilities={"gpu": "nvidia"}, max_parallel_per_node=2),
)
def told() -> None:
    """A task with options of its own."""
