"""What is asked for from outside."""

from __future__ import annotations

import json as json
from datetime import date, timedelta
from typing import Any

from aaiclick.orchestration import job, task


@task
def echo(value: Any) -> Any:
    return value


@task
def pair(left: str, right: str = "") -> list[str]:
    return [left, right]


@task
def on_day(day: date, by: int = 1) -> date:
    return day + timedelta(days=by)


@task
def fail() -> None:
    print("about to fail")
    raise ValueError("no")


def plain() -> None:
    """Not marked: nobody may run this from outside."""


@job
def workflow(x: int) -> Any:
    return echo(x)


@job
def chain(x: int) -> Any:
    return echo(echo(echo(x)))
