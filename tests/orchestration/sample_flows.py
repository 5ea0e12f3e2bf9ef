"""Tasks and workflows that tests submit: module-level functions, as a worker would import them."""

from __future__ import annotations

import asyncio
import functools
import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from aaiclick.orchestration import RetryPolicy, TaskResult, cancel_job, get_current_run, job, task

AT_ONCE = RetryPolicy(max_retries=3, delay_s=0)

CALLS: Counter[str] = Counter()
"""How often a body ran, by the key that its test chose."""

SEEN: dict[str, list[Any]] = {}
"""What bodies noted, by the key that their test chose."""


async def noted(key: str, count: int = 1) -> None:
    """Come back when so many notes were left under the key."""
    while len(SEEN.get(key, ())) < count:  # noqa: ASYNC110 (an Event belongs to one loop, bodies may run in another)
        await asyncio.sleep(0.001)


# ---------------------------------------------------------------- tasks that work


@task
async def add(a: int, b: int) -> int:
    return a + b


@task
async def multiply(x: int, y: int) -> int:
    return x * y


@task
def add_on_a_thread(a: int, b: int) -> int:
    return a + b


@task
async def total(values: list[int]) -> int:
    return sum(values)


@task
async def echo(value: object) -> object:
    return value


@task
def echo_on_a_thread(value: object) -> object:
    return value


@task
async def nothing() -> None: ...


@task
async def note(key: str, value: object = None) -> object:
    """Leave a note that the body ran."""
    CALLS[key] += 1
    SEEN.setdefault(key, []).append(value)
    return value


def plain(a: int = 1) -> int:
    """Not decorated: a valid entrypoint all the same."""
    return a


@task
async def with_defaults(a: int, b: int = 2, *, c: int = 3) -> tuple[int, int, int]:
    return a, b, c


@task
async def with_the_rest(a: int, **others: object) -> dict[str, object]:
    return {"a": a, **others}


@task
async def only_by_position(a: int, /, b: int) -> int:
    return a + b


@task
async def with_stars(*values: int) -> int:
    return sum(values)


@task
async def takes_self(self: int, function: int) -> int:
    return self + function


@task
async def größe(wert: int) -> int:
    return wert


class Shop:
    """Functions inside a class."""

    @staticmethod
    @task
    async def price(amount: int) -> int:
        return amount * 2

    @task
    async def bound(self, amount: int) -> int:
        return amount


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator as people write them."""

    @functools.wraps(function)
    async def around(*args: Any, **kwargs: Any) -> Any:
        return await function(*args, **kwargs)

    return around


@task
@logged
async def decorated_inside(a: int) -> int:
    return a


# ---------------------------------------------------------------- tasks that do not


@task
async def fail(message: str = "no") -> None:
    raise ValueError(message)


@task
async def flaky(key: str, failures: int) -> int:
    """Fails so many times, then gives the number of calls."""
    CALLS[key] += 1
    if CALLS[key] <= failures:
        raise RuntimeError(f"attempt {CALLS[key]}")
    return CALLS[key]


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("not even that")


class UnspeakableExit(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class Own(BaseException):
    """Not an Exception."""


RAISES: dict[str, Callable[[], BaseException]] = {
    "BaseException": lambda: Own("own"),
    "SystemExit": lambda: SystemExit(3),
    "GeneratorExit": lambda: GeneratorExit("over"),
    "ExceptionGroup": lambda: ExceptionGroup("several", [ValueError("one"), KeyError("two")]),
    "Unspeakable": Unspeakable,
    "UnspeakableExit": UnspeakableExit,
    "CancelledError": asyncio.CancelledError,
    "TimeoutError": lambda: TimeoutError("its own"),
    "MemoryError": MemoryError,
    "long": lambda: ValueError("<" + "x" * 5_000_000 + ">"),
    "emoji": lambda: ValueError("😀" * 1_000_000),
    "NUL": lambda: ValueError("a\0b\ud800c"),
    "secret": lambda: ValueError("postgresql://me:hunter2@host/db and password=hunter2"),
}


@task
async def raises(kind: str) -> None:
    raise RAISES[kind]()


@task
def raises_on_a_thread(kind: str) -> None:
    raise RAISES[kind]()


@task
def stops() -> None:
    raise StopIteration("enough")


@task
def interrupts_on_a_thread() -> None:
    raise KeyboardInterrupt


@task
async def interrupts() -> None:
    raise KeyboardInterrupt


@task
async def cancels_itself() -> None:
    own = asyncio.current_task()
    assert own is not None
    own.cancel()
    await asyncio.sleep(0)


@task
async def yields() -> AsyncIterator[int]:
    yield 1


@task
def yields_on_a_thread() -> Iterator[int]:
    yield 1


@task
def gives_an_awaitable(a: int) -> Awaitable[int]:
    async def later() -> int:
        return a + 1

    return later()


def _contains_itself() -> list[object]:
    endless: list[object] = []
    endless.append(endless)
    return endless


RETURNS: dict[str, Callable[[], object]] = {
    "object": object,
    "generator": lambda: (number for number in range(3)),
    "itself": _contains_itself,
    "lock": threading.Lock,
    "function": lambda: plain,
    "result within data": lambda: [TaskResult(data=5)],
}


@task(max_retries=5)
async def returns(kind: str, key: str) -> object:
    CALLS[key] += 1
    return RETURNS[kind]()


@task
async def hands_on(data: object) -> TaskResult:
    return TaskResult(data=data)


# ---------------------------------------------------------------- tasks that take their time


@task
async def waits(key: str) -> None:
    """Note that it began, and never end."""
    SEEN.setdefault(key, []).append("began")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        SEEN[key].append("stopped")
        raise


@task(timeout_s=0.05)
async def too_slow() -> None:
    await asyncio.sleep(3600)


@task(timeout_s=0.05)
def hangs_on_a_thread() -> None:
    time.sleep(3600)


@task
async def cancels_its_job(job_name: str) -> None:
    """Cancel the job that this task belongs to, and go on as if nothing were."""
    from aaiclick.orchestration import list_jobs

    (mine,) = await list_jobs(name_like=job_name)
    await cancel_job(mine.id)
    await asyncio.sleep(3600)


GATES: dict[str, asyncio.Event] = {}


@task
async def opens_gate(key: str) -> None:
    """Fail once, then let `awaits_gate` go on."""
    CALLS[key] += 1
    if CALLS[key] == 1:
        raise RuntimeError("not yet")
    GATES[key].set()


@task
async def awaits_gate(key: str) -> str:
    SEEN.setdefault(key, []).append("began")
    await GATES[key].wait()
    return "passed"


# ---------------------------------------------------------------- workflows


@job("pipeline")
def pipeline(x: int, y: int) -> TaskResult:
    sum_result = add(a=x, b=y)
    product = multiply(x=x, y=y)
    return TaskResult(tasks=[sum_result, product])


@job
def single(x: int = 1) -> object:
    return echo(x)


@job
async def built_in_a_coroutine(x: int) -> object:
    await asyncio.sleep(0)
    return echo(x)


@job
def fan(width: int) -> int:
    return total([add(a=number, b=1) for number in range(width)])


@job
def empty() -> None: ...


@job
def breaks() -> None:
    echo(1)
    raise LookupError("the workflow itself")


@task
def tells_its_run() -> list[object]:
    from aaiclick.orchestration import cancel_requested, get_current_run

    run = get_current_run()
    return [run.task_id, run.job_id, run.idempotency_key, cancel_requested()]


@task
def says(line: str) -> str | None:
    print(line)
    print("an error", file=sys.stderr)
    logging.getLogger("flows").warning("watch out")
    return get_current_run().log_path


@job
def prints_and_logs(line: str) -> str | None:
    return says(line)


@task
async def sleeps(seconds: float) -> None:
    await asyncio.sleep(seconds)


@job
def runs(what: object, **kwargs: object) -> object:
    """A workflow of one task: any of the above."""
    return globals()[str(what)](**kwargs)


@job("a job in a job")
def nests() -> object:
    return single(x=5)


@job
def takes_part_of_another() -> object:
    return single.function(x=5)
