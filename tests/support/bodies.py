"""Bodies for executors: plain functions that a child imports by name, and the claims that ask for them."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aaiclick.orchestration.execution.runs.current import cancel_requested, get_current_run
from aaiclick.orchestration.models import Claim, Done, Failure, Report
from aaiclick.orchestration.rules.values.encoding import decode_value, encode_kwargs

EPOCH = 3

_ids = itertools.count(1_000)


def claim_of(body: str | Callable[..., Any], timeout_s: float | None = None, **kwargs: object) -> Claim:
    """What a worker would be given to run this."""
    name = body if isinstance(body, str) else f"{body.__module__}.{body.__name__}"
    return Claim(
        task_id=next(_ids),
        epoch=EPOCH,
        worker_id=1,
        job_id=9,
        group_id=None,
        name=name.rpartition(".")[2],
        entrypoint=name,
        kwargs_json=encode_kwargs(kwargs, bytes_max=10**7),
        attempt=1,
        timeout_s=timeout_s,
    )


def result_in(report: Report) -> Any:
    assert isinstance(report, Done), report
    return decode_value(report.result_json)


def failure_in(report: Report) -> Failure:
    assert isinstance(report, Failure), report
    return report


def log_of(report: Report) -> str:
    assert report.log_path is not None
    return Path(report.log_path).read_bytes().decode(errors="backslashreplace")


def pids_in(path: Path) -> list[int]:
    """The processes that a body noted."""
    return [int(pid) for pid in path.read_text().split()]


async def until_pid(path: Path) -> int:
    """The process that a body notes when it begins."""
    await until(lambda: path.exists() and path.read_text())
    return pids_in(path)[0]


async def until(condition: Callable[[], object], limit_s: float = 60) -> None:
    """Come back when it is so."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come to be"
        await asyncio.sleep(0.005)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


# ---------------------------------------------------------------- any executor can run these


def nothing() -> None: ...


def echo(value: object) -> object:
    return value


async def echo_async(value: object) -> object:
    await asyncio.sleep(0)
    return value


def count(up_to: int) -> int:
    return sum(range(up_to))


def length(text: str) -> int:
    return len(text)


def raises(kind: str) -> None:
    from tests.orchestration.sample_flows import RAISES  # a child that need not import it begins sooner

    raise RAISES[kind]()


async def raises_async(kind: str) -> None:
    raises(kind)


def interrupts() -> None:
    raise KeyboardInterrupt


async def interrupts_async() -> None:
    raise KeyboardInterrupt


def returns(kind: str) -> object:
    from tests.orchestration.sample_flows import RETURNS

    return "x" * 100_000_001 if kind == "over 100 MB" else RETURNS[kind]()


def says(text: str, times: int = 1) -> None:
    for _ in range(times):
        print(text)
        time.sleep(0.001)


async def says_async(text: str, times: int = 1) -> None:
    for _ in range(times):
        print(text)
        await asyncio.sleep(0.001)


def says_in_every_way() -> None:
    print("print")
    sys.stdout.write("write\n")
    sys.stdout.flush()
    sys.stdout.buffer.write(b"bytes \xff\n")
    sys.stdout.buffer.flush()
    print("to stderr", file=sys.stderr)
    assert not sys.stdout.isatty()
    assert sys.stdout.writable()
    logging.getLogger("mine").warning("log %s", 1)
    try:
        raise LookupError("inside")
    except LookupError:
        logging.getLogger("mine").exception("it broke")
    print("no newline", end="")


async def says_and_waits(text: str, path: str) -> None:
    print(text)
    await waits(path)


async def who_am_i() -> list[object]:
    run = get_current_run()
    return [run.task_id, run.job_id, run.epoch, run.attempt, run.name, run.idempotency_key, cancel_requested()]


def touch(path: str, text: str = "") -> None:
    Path(path).write_text(text)


async def waits(path: str) -> None:
    """Note that it began; wait for ever; note that it was stopped."""
    touch(f"{path}.began", str(os.getpid()))
    try:
        await asyncio.Event().wait()
    finally:
        touch(f"{path}.stopped")


def asks(path: str) -> None:
    """A plain function that looks whether it should end."""
    touch(f"{path}.began", str(os.getpid()))
    while not cancel_requested():
        time.sleep(0.005)
    touch(f"{path}.stopped")


def sleeps(seconds: float) -> None:
    time.sleep(seconds)


async def sleeps_async(seconds: float) -> None:
    await asyncio.sleep(seconds)


def log_here() -> None:
    logging.getLogger("theirs").warning("here")


async def log_here_async() -> None:
    log_here()


def log_on_thread() -> None:
    thread = threading.Thread(target=log_here)
    thread.start()
    thread.join()


def granted() -> list[object]:
    """What this run was granted, as it is told and as its environment says, and where it runs."""
    return [dict(get_current_run().resources), os.environ.get("CUDA_VISIBLE_DEVICES"), os.getpid()]
