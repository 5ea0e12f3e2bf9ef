"""Commands and calls that somebody outside may ask for, because code describes them."""

from __future__ import annotations

from typing import Any

from aaiclick.orchestration import RetryPolicy, create_task, job, task


@task(executor="shell", retry=RetryPolicy(max_retries=2, delay_s=0.5), timeout_s=60)
def greets(name: str) -> list[str]:
    """The command is the code's; the argument is one word of it."""
    return ["echo", f"hello {name}"]


@task
def lists(words: list[str]) -> list[str]:
    """No command: what it returns is a list."""
    return words


@job
def runs_what_it_is_told(executor: str, argv: Any) -> Any:
    return create_task(executor=executor, kwargs={"argv": argv})
