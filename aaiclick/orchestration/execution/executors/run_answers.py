"""The worker's side of what a run asks while its body goes on, over whatever transport its messages come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from aaiclick.data.clients.opening import start_owner
from aaiclick.errors import ClaimLost
from aaiclick.ids import BLOCK_MAX, new_ids
from aaiclick.orchestration.execution.desk import Desk
from aaiclick.orchestration.execution.executors.questions import (
    EngineWanted,
    Ids,
    IdsWanted,
    SecretsFound,
    SecretsMasked,
    Slots,
    SlotsWanted,
    TablesHeld,
    TablesWanted,
)
from aaiclick.orchestration.execution.executors.wire import Broken, Message
from aaiclick.orchestration.models import Claim
from aaiclick.telemetry import masks


class RunAnswers:
    """Answers one child, run after run; `say` sends it a message."""

    def __init__(self, say: Callable[[Message], None]) -> None:
        self._say = say
        self._claim: Claim | None = None
        self._desk: Desk | None = None
        self._asking: set[asyncio.Task[None]] = set()

    def begin(self, claim: Claim, desk: Desk | None) -> None:
        """From now on it is this run that asks, and the desk that knows; without one, all is granted."""
        self._claim, self._desk = claim, desk

    def end(self) -> None:
        """The run is over: nobody waits for what is still on its way."""
        self._claim = self._desk = None
        for asking in self._asking:
            asking.cancel()

    def answer(self, message: Message) -> None:
        """Answer at once, or as soon as the desk knows."""
        match message:
            case EngineWanted():
                start_owner()
            case IdsWanted(serial=serial, count=count):
                self._say(Ids(serial, new_ids(min(max(count, 1), BLOCK_MAX))))
            case SecretsFound(serial=serial, values=values):
                masks.remember(values)
                self._say(SecretsMasked(serial))
            case TablesWanted() if self._claim is not None:
                self._ask_desk(self._hold(message, self._claim))
            case SlotsWanted(serial=serial):
                self._ask_desk(self._count_slots(serial))
            case _:
                raise Broken(f"a child does not say {type(message).__name__}")

    def _ask_desk(self, work: Coroutine[Any, Any, None]) -> None:
        asking = asyncio.get_running_loop().create_task(work)
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)

    async def _count_slots(self, serial: int) -> None:
        self._say(Slots(serial, 0 if self._desk is None else await self._desk.slots()))

    async def _hold(self, wanted: TablesWanted, claim: Claim) -> None:
        """Ask the desk for the child, which has no way to the state of its own."""
        if self._desk is None:
            self._say(TablesHeld(wanted.serial, ""))
            return
        try:
            named = await self._desk.hold(claim, wanted.tables)
        except ClaimLost as lost:
            self._say(TablesHeld(wanted.serial, "", str(lost)))
        else:
            self._say(TablesHeld(wanted.serial, named))
