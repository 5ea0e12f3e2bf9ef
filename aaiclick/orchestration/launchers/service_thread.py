"""The service thread of a worker: it sends the heartbeats and runs the control loop, so that no body delays them."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from aaiclick.backoff import Backoff
from aaiclick.config import settings
from aaiclick.ids import new_id
from aaiclick.orchestration.connections import connected, employed
from aaiclick.orchestration.coordinator.contract import Coordinator
from aaiclick.orchestration.execution.heartbeat import Heartbeat
from aaiclick.orchestration.execution.id_supply import keep_ids
from aaiclick.orchestration.execution.worker import TaskWorker
from aaiclick.orchestration.log_stores.opening import log_store
from aaiclick.orchestration.models import Orders
from aaiclick.telemetry.fields import bound

if TYPE_CHECKING:
    from aaiclick.orchestration.store.database import Database

log = logging.getLogger("aaiclick")

RETRY_S = 1.0

GOODBYE_S = 10.0
"""How long to wait for the thread to end."""


class Service:
    """A thread with its own event loop and its own connections to the state. Use it as an async context manager.

    Without a worker it runs the control loop alone.
    """

    def __init__(self, worker: TaskWorker | None, *, control: bool) -> None:
        self.worker = worker
        self.control = control
        self._home = asyncio.get_running_loop()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._up = threading.Event()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._main, name="aaiclick-service", daemon=True)
        self._heart: Heartbeat | None = None
        self._worker_id = 0
        if worker is not None:
            worker.on_session = self._attend

    async def __aenter__(self) -> Service:
        self._thread.start()
        await asyncio.to_thread(self._up.wait)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._call(self._stop)
        try:
            async with asyncio.timeout(GOODBYE_S):
                await self._ended.wait()
        except TimeoutError:  # it is a daemon thread: it ends with the process
            log.warning("the heartbeat thread of the worker does not end: the database does not answer")

    def ask(self) -> None:
        """Send a heartbeat now: a hint says that there may be orders."""
        self._call(self._ask)

    # ------------------------------------------------------------ called from the worker's loop

    async def _attend(self, worker: TaskWorker) -> None:
        """Start the heartbeat of a session that has just begun."""
        self._call(self._beat_for, worker.id)

    def _call(self, function: Callable[..., None], *args: object) -> None:
        assert self._loop is not None, "the service has not begun"
        with suppress(RuntimeError):  # the thread's loop is closed
            self._loop.call_soon_threadsafe(function, *args)

    # ------------------------------------------------------------ on the thread

    def _main(self) -> None:
        try:
            with bound(worker=lambda: self._worker_id or None):
                asyncio.run(self._live())
        except Exception:
            log.exception("the heartbeat thread of the worker has failed")
        finally:
            self._up.set()
            with suppress(RuntimeError):
                self._home.call_soon_threadsafe(self._ended.set)

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        self._session, self._begun = asyncio.Event(), asyncio.Event()
        backoff = Backoff()
        self._up.set()
        while not self._stopped.is_set():
            try:
                async with connected() if self.control else nullcontext() as database, employed() as coordinator:
                    backoff.over()
                    await self._serve(database, coordinator)
            except Exception as error:
                backoff.met("connecting the heartbeat thread of the worker", error)
                await self._pause(RETRY_S)

    async def _serve(self, database: Database | None, coordinator: Coordinator) -> None:
        tasks: list[asyncio.Task[Any]] = [
            asyncio.create_task(self._stopped.wait()),
            asyncio.create_task(keep_ids(coordinator)),
        ]
        if database is not None:
            tasks.append(asyncio.create_task(self._control(database)))
        if self.worker is not None:
            tasks.append(asyncio.create_task(self._beat_forever(self.worker, coordinator)))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _control(self, database: Database) -> None:
        """Run the control loop under the worker's id, so that the leader can be found in the list of workers."""
        from aaiclick.orchestration.control.control_loop import Control  # here: a worker on a server loads no store
        from aaiclick.orchestration.streams.relay import Relay  # here, for the same reason

        if self.worker is not None:
            await self._begun.wait()
        holder = self._worker_id or new_id()
        with bound(control=holder):
            control = Control(database, holder, session_s=settings().session_s, logs=log_store())
            relays = [Relay.of_settings(lambda: control.leader.leads).run()] if settings().redis_ingest else []
            await asyncio.gather(control.run(), *relays)

    async def _beat_forever(self, worker: TaskWorker, coordinator: Coordinator) -> None:
        if self._worker_id:  # reconnected during a session: the heartbeat starts again too
            self._session.set()
        while True:
            await self._session.wait()
            self._session.clear()
            session = self._worker_id
            heart = Heartbeat(
                coordinator,
                session,
                worker.holdings,
                partial(self._bring, worker, session),
                every_s=settings().beat_every_s,
                on_renewed=worker.cutoff.renewed,
            )
            self._heart = heart
            await heart.beat_forever()

    def _bring(self, worker: TaskWorker, session: int, orders: Orders) -> None:
        with suppress(RuntimeError):  # the worker's loop is closed
            self._home.call_soon_threadsafe(_obey, worker, session, orders)

    def _beat_for(self, worker_id: int) -> None:
        self._worker_id = worker_id
        self._session.set()
        self._begun.set()

    def _ask(self) -> None:
        if self._heart is not None:
            self._heart.ask()

    def _stop(self) -> None:
        self._stopped.set()

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopped.wait()


def _obey(worker: TaskWorker, session: int, orders: Orders) -> None:
    if worker.id == session:
        worker.obey(orders)
