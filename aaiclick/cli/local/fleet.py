"""The fleet of one machine: the engine's owner, the control loop, the server and workers, started and stopped as one.

This process only watches. Each part is a process of its own, in a session of its own; if this one is killed, they end.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from aaiclick.cli.errors import PIPE_CLOSED
from aaiclick.cli.local.fleet_events import Tell
from aaiclick.cli.local.fleet_lock import FleetLock
from aaiclick.cli.local.reloading import changes_in
from aaiclick.cli.local.server_socket import first_token, open_door
from aaiclick.cli.local.supervised_process import SupervisedProcess, deaths_seen_by, our_command
from aaiclick.data.embedded.directory_lock import find_gateway
from aaiclick.errors import AaiclickError, EngineUnavailable
from aaiclick.server.transport.addresses import url_of

LOOK_EVERY_S = 0.05
SEAT_EVERY_S = 0.5
LAST_WORDS_S = 30.0
"""What a worker may take beyond its grace: to stop bodies, give back their tasks and tell its last results."""

CLOSING_S = 30.0
"""How long the control loop, the server and the engine may take to end."""

SHOWN_MAX = 3
"""How many files that have changed are named."""


@dataclass(frozen=True)
class Plan:
    """The parts to start, and their settings."""

    engine: Path | None
    """The directory of the embedded engine; None if the data is on a server."""
    workers: int
    worker_options: Sequence[str]
    verbose: bool
    grace_s: float
    """How long workers let tasks finish."""
    door: int | None = None
    """The socket that the server listens on; None for no server. It is held here, so that it outlives the server."""
    server_options: Sequence[str] = ()
    watched: str | None = None
    """The directory whose modules are watched: when they change, the workers are restarted."""
    seat: FleetLock | None = None
    """The first seat on the root, if another fleet has it: when that one is gone, its server is ours to start."""


class Fleet:
    """The parts, and the order in which they start and stop."""

    def __init__(self, plan: Plan, tell: Tell) -> None:
        self.plan = plan
        self._show = tell
        self._code = 0
        self._unheard = False
        self._told, self._hurry = asyncio.Event(), asyncio.Event()
        self._doors: list[socket.socket] = []
        said_more = ["-v"] if plan.verbose else []
        name = "local" if plan.seat is None else f"local-{os.getpid()}"
        worker = our_command("worker", "start", "--no-control", *plan.worker_options, *said_more)
        self.engine = (
            [SupervisedProcess("engine", our_command("data", "serve", "--wait"), self._tell)] if plan.engine else []
        )
        self.control = [SupervisedProcess("control", our_command("background", "start", *said_more), self._tell)]
        self.server = [] if plan.door is None else [self._server(plan.door)]
        self.workers = [
            SupervisedProcess(f"worker {number}", [*worker, "--name", f"{name}-{number}"], self._tell)
            for number in range(1, plan.workers + 1)
        ]
        self._kept: list[asyncio.Task[int]] = []
        self._begun: list[SupervisedProcess] = []

    def _server(self, door: int) -> SupervisedProcess:
        options = [*self.plan.server_options, *(["-v"] if self.plan.verbose else [])]
        return SupervisedProcess(
            "server", our_command("server", "start", "--fd", str(door), *options), self._tell, (door,)
        )

    async def run(self) -> int:
        """Run until a signal, a part that cannot start, or a closed output; return the exit code."""
        parts = [*self.engine, *self.control, *self.workers]
        with deaths_seen_by(*parts, later=self.server), self._signals():
            watching = [asyncio.create_task(self._watch()), asyncio.create_task(self._inherit())]
            for each in watching:
                each.add_done_callback(lambda _: self._told.set())
            try:
                await self._begin()
                await self._told.wait()
                await _cancelled(watching)
                await self._end()
            finally:
                for part in (*parts, *self.server):
                    part.kill()
                await asyncio.gather(*self._kept)
                await _cancelled(watching)
                for door in self._doors:
                    door.close()
        for each in watching:
            if not each.cancelled():
                each.result()
        return self._code

    # ------------------------------------------------------------ the order

    async def _begin(self) -> None:
        """The engine first: what needs it finds it."""
        self._start(*self.engine)
        while self.engine and not self._told.is_set() and not self._engine_is_ready():  # noqa: ASYNC110 (it tells by a file)
            await asyncio.sleep(LOOK_EVERY_S)
        if not self._told.is_set():
            self._start(*self.control, *self.server, *self.workers)
            await asyncio.sleep(0)  # each starts its process in its first step
            self._tell("up")

    async def _end(self) -> None:
        """The workers first: while they finish, what they need is there."""
        self._tell("stopping", grace_s=self.plan.grace_s)
        await self._stop(self.workers, self.plan.grace_s + LAST_WORDS_S)
        await self._stop([*self.control, *self.server], CLOSING_S)
        await self._stop(self.engine, CLOSING_S)
        self._tell("stopped")

    async def _watch(self) -> None:
        """Whenever modules have changed, let the workers finish what they run and start them anew."""
        if self.plan.watched is None:
            await self._told.wait()
            return
        async for files in changes_in(self.plan.watched):
            self._tell("reloading", files=files[:SHOWN_MAX], count=len(files))
            await asyncio.gather(*(worker.renew(self.plan.grace_s + LAST_WORDS_S) for worker in self.workers))

    async def _inherit(self) -> None:
        """When the fleet before us on this root is gone, start a server in the place of its."""
        seat = self.plan.seat
        while seat is not None and not seat.take():  # noqa: ASYNC110 (a lock tells nobody)
            await asyncio.sleep(SEAT_EVERY_S)
        door = None if seat is None or self.server else open_door(None, None)
        if seat is not None and door is not None:
            self._doors.append(door)
            while not await _has_token(door):  # noqa: ASYNC110 (asked again)
                await asyncio.sleep(SEAT_EVERY_S)
            seat.tell_server(f"{url_of(door)}/api/v1")
            self.server.append(self._server(door.fileno()))
            self._tell("inherits", server=f"{url_of(door)}/api/v1")
            self._start(*self.server)
        await self._told.wait()

    def _start(self, *parts: SupervisedProcess) -> None:
        for part in parts:
            keeping = asyncio.create_task(part.keep())
            keeping.add_done_callback(self._on_over)
            self._kept.append(keeping)
            self._begun.append(part)

    async def _stop(self, parts: Sequence[SupervisedProcess], grace_s: float) -> None:
        await asyncio.gather(*(part.stop(grace_s, self._hurry) for part in parts if part in self._begun))

    def _engine_is_ready(self) -> bool:
        assert self.plan.engine is not None
        try:
            return find_gateway(self.plan.engine, 0) is not None
        except EngineUnavailable:  # the part meets the same, says so, and ends
            return False

    def _on_over(self, keeping: asyncio.Task[int]) -> None:
        """A part that is not kept any more, though nobody stopped it, ends the fleet."""
        if not keeping.cancelled() and keeping.exception() is None:
            self._code = self._code or keeping.result()
        self._told.set()

    # ------------------------------------------------------------ from outside, and to it

    @contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        heard = [signal.SIGTERM, signal.SIGINT]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # else someone said nohup
            heard.append(signal.SIGHUP)
        for number in heard:
            loop.add_signal_handler(number, self._on_signal)
        try:
            yield
        finally:
            for number in heard:
                loop.remove_signal_handler(number)

    def _on_signal(self) -> None:
        """Stop in order; at the second signal now, at the third without a word."""
        if self._hurry.is_set():
            for part in self._begun:
                part.kill()
        elif self._told.is_set():
            self._tell("hurrying")
            self._hurry.set()
        self._told.set()

    def _tell(self, event: str, /, **facts: object) -> None:
        """Show it; when nobody reads any more, stop."""
        if self._unheard:
            return
        try:
            self._show(event, **facts)
        except OSError:
            self._unheard, self._code = True, PIPE_CLOSED
            self._told.set()


async def _has_token(door: socket.socket) -> bool:
    """Whether the server can be opened; not while the database is away, which must not end what runs."""
    try:
        await first_token(door)
    except AaiclickError:
        return False
    return True


async def _cancelled(tasks: Sequence[asyncio.Task[None]]) -> None:
    """End these; what went wrong in them is kept."""
    for each in tasks:
        each.cancel()
    await asyncio.wait(tasks)
