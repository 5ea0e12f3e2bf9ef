"""What `worker start` runs: a worker with heartbeat, wake-ups, signal handling and, unless disabled, the control loop.

`background_main_loop` runs the control loop without a worker.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from aaiclick.backoff import Backoff
from aaiclick.config import settings
from aaiclick.data.clients.opening import kept_open
from aaiclick.errors import AaiclickError, InputError
from aaiclick.orchestration.connections import connected, employed
from aaiclick.orchestration.coordinator.contract import Coordinator
from aaiclick.orchestration.coordinator.http.protocol import HELD_S_MAX
from aaiclick.orchestration.execution.executors.contract import Executor
from aaiclick.orchestration.execution.logs.shipping import shipping
from aaiclick.orchestration.execution.worker import TaskWorker
from aaiclick.orchestration.launchers.log_sending import log_target
from aaiclick.orchestration.launchers.node_discovery import describe_node
from aaiclick.orchestration.launchers.service_thread import Service
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.naming.hints import FREED, ORDERS, READY
from aaiclick.orchestration.rules.validation import check_name, shorten
from aaiclick.telemetry.fields import bound

log = logging.getLogger("aaiclick")

EXECUTORS = ("process", "inline")
INLINE_CONCURRENCY = 100
CONCURRENCY_MAX = 10_000
HEAR_S = 60.0
COLLECT_EVERY = (20_000, 20, 20)
"""Thresholds of the garbage collector. Python's defaults collect many times per batch of tasks, which costs a sixth of
a worker's time."""


async def worker_main_loop(
    worker_id: int | None = None,
    *,
    concurrency: int | None = None,
    executor: str = "process",
    max_tasks: int | None = None,
    name: str | None = None,
    control: bool = True,
    app_dir: str | None = None,
    node: NodeDescription | None = None,
    begun: Callable[[], None] = lambda: None,
) -> None:
    """Claim and run tasks until a signal, an order or `max_tasks` ends the worker.

    `worker_id` is a session that was begun before; with None a new one begins. `node` describes this machine; with None
    what it has is found out. `begun` is called once the database has been reached.
    """
    slots = check_concurrency(concurrency, executor)
    runs = _executor(executor, slots, app_dir)
    most, label = _check_count(max_tasks, "max_tasks"), _check_label(name)
    described = describe_node() if node is None else node
    await _work(runs, worker_id, slots, most, label, described, control=control, begun=begun)


def _executor(executor: str, slots: int, app_dir: str | None) -> Executor:
    if executor == "process":
        from aaiclick.orchestration.execution.executors.process import ProcessExecutor  # here, to keep start-up light

        return ProcessExecutor(slots, app_dir)
    from aaiclick.orchestration.execution.executors.inline import InlineExecutor  # here: it loads all that bodies need

    return InlineExecutor()


async def _work(
    executor: Executor,
    worker_id: int | None,
    slots: int,
    max_tasks: int | None,
    name: str | None,
    node: NodeDescription,
    *,
    control: bool,
    begun: Callable[[], None],
) -> None:
    with (
        rare_collections(),
        ExitStack() as last,
    ):  # signals are handled to the very end: a second one may arrive while connections are being closed
        async with kept_open(), employed(node) as coordinator, shipping(log_target()):
            begun()
            worker = TaskWorker(
                coordinator,
                executor,
                concurrency=slots,
                name=name,
                node=node,
                max_tasks=max_tasks,
                grace_s=settings().shutdown_grace_s,
                session=worker_id,
                hold_s=HELD_S_MAX if settings().coordinator_urls else 0.0,
            )
            last.enter_context(stopped_by_signals(worker))
            async with Service(worker, control=control and not settings().coordinator_urls) as service:
                hearing = asyncio.create_task(_hear(coordinator, worker, service))
                try:
                    with bound(worker=lambda: worker.id or None):
                        await worker.run()
                finally:
                    hearing.cancel()
                    await asyncio.gather(hearing, return_exceptions=True)


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage less often, and exclude all objects that exist already, such as imported modules."""
    before = gc.get_threshold()
    if before == COLLECT_EVERY:  # another worker of this process has set it, and will restore it
        yield
        return
    gc.freeze()
    gc.set_threshold(*COLLECT_EVERY)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


async def _hear(coordinator: Coordinator, worker: TaskWorker, service: Service) -> None:
    """Pass hints on to the worker and its heartbeat. Lost hints do no harm, since both also poll."""
    backoff = Backoff()
    while True:
        try:
            hints = await coordinator.wait_for_hints(HEAR_S)
        except AaiclickError as error:  # of a server; a database's coordinator raises none
            backoff.met(f"worker {worker.id}: hearing hints", error)
            await asyncio.sleep(backoff.pause_s)
            continue
        backoff.over()
        if not hints.isdisjoint((READY, FREED)):
            worker.wake()
        if ORDERS in hints:
            service.ask()


async def background_main_loop(begun: Callable[[], None] = lambda: None) -> None:
    """Run the control loop alone, until a signal ends it. `begun` is called once the database has been reached."""
    ended = asyncio.Event()
    async with connected():  # raises now if the database cannot be reached
        begun()
    with on_signals(ended.set):
        async with Service(None, control=True):
            await ended.wait()


# ---------------------------------------------------------------- signals


@contextmanager
def stopped_by_signals(worker: TaskWorker) -> Iterator[None]:
    """Let SIGTERM, SIGINT and SIGHUP stop the worker within its grace period. A second signal stops it at once."""
    with on_signals(worker.stop):
        yield


@contextmanager
def on_signals(call: Callable[[], None]) -> Iterator[None]:
    """Call a function on SIGTERM, SIGINT and SIGHUP. Does nothing outside the main thread, where Python refuses it.

    On exit the previous handlers are restored with the signals blocked, so that none arrives while the default action,
    which ends the process, is set.
    """
    loop = asyncio.get_running_loop()
    before: dict[signal.Signals, Any] = {}
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        handler = signal.getsignal(each)
        try:
            loop.add_signal_handler(each, call)
        except (ValueError, RuntimeError, NotImplementedError):  # not the main thread, or not a POSIX system
            break
        before[each] = handler
    try:
        yield
    finally:
        held = signal.pthread_sigmask(signal.SIG_BLOCK, before) if before else None
        for each, handler in before.items():
            loop.remove_signal_handler(each)
            signal.signal(each, handler)
        if held is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)


# ---------------------------------------------------------------- options


def check_concurrency(concurrency: int | None, executor: str) -> int:
    """Return the number of concurrent runs. The default is one per processor, or `INLINE_CONCURRENCY` if inline.

    Raises InputError if the executor is unknown, or the number is out of range.
    """
    if executor not in EXECUTORS:
        hint = "process keeps tasks apart from the worker; inline is for short tasks that you trust."
        raise InputError(
            field="executor", value=shorten(executor), rule=f"it must be one of {', '.join(EXECUTORS)}", hint=hint
        )
    if concurrency is None:
        return INLINE_CONCURRENCY if executor == "inline" else os.cpu_count() or 1
    found = _check_count(concurrency, "concurrency")
    assert found is not None
    if found > CONCURRENCY_MAX:
        rule = f"it must be a whole number from 1 to {CONCURRENCY_MAX}"
        raise InputError(field="concurrency", value=shorten(concurrency), rule=rule, hint="")
    return found


def _check_count(value: int | None, field: str) -> int | None:
    if value is not None and (type(value) is not int or value < 1):
        raise InputError(field=field, value=shorten(value), rule="it must be a whole number above 0", hint="")
    return value


def _check_label(name: str | None) -> str | None:
    return None if name is None else check_name(name, "Worker name")
