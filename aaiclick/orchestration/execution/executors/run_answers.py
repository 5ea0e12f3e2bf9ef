"""The worker's side of what a run asks while its body goes on, over whatever transport its messages come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from aaiclick.data.clients.opening import start_owner
from aaiclick.errors import ClaimLost
from aaiclick.ids import BLOCK_MAX, new_ids
from aaiclick.orchestration.execution.executors.questions import (
    Answer,
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
from aaiclick.orchestration.execution.runs.run_services import RunServices
from aaiclick.orchestration.models import Claim
from aaiclick.telemetry import masks

Say = Callable[[Answer], None]
"""Sends an answer to whatever runs the body."""


class RunAnswers:
    """Answers one run, through the services of its worker; without one, all is granted."""

    def __init__(self, claim: Claim, services: RunServices | None) -> None:
        self._claim, self._services = claim, services
        self._asking: set[asyncio.Task[None]] = set()

    def end(self) -> None:
        """The run is over: nobody waits for what is still on its way."""
        for asking in self._asking:
            asking.cancel()

    def answer(self, message: Message, say: Say) -> None:
        """Answer at once, or as soon as the run's services answer."""
        match message:
            case EngineWanted():
                start_owner()
            case IdsWanted(serial=serial, count=count):
                say(Ids(serial, new_ids(min(max(count, 1), BLOCK_MAX))))
            case SecretsFound(serial=serial, values=values):
                masks.remember(values)
                say(SecretsMasked(serial))
            case TablesWanted():
                self._ask_services(self._hold(message, say))
            case SlotsWanted(serial=serial):
                self._ask_services(self._count_slots(serial, say))
            case _:
                raise Broken(f"a run does not say {type(message).__name__}")

    def _ask_services(self, work: Coroutine[Any, Any, None]) -> None:
        asking = asyncio.get_running_loop().create_task(work)
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)

    async def _count_slots(self, serial: int, say: Say) -> None:
        say(Slots(serial, 0 if self._services is None else await self._services.slots()))

    async def _hold(self, wanted: TablesWanted, say: Say) -> None:
        """Ask the run's services for the body, which has no way to the state of its own."""
        if self._services is None:
            say(TablesHeld(wanted.serial, ""))
            return
        try:
            named = await self._services.hold(self._claim, wanted.tables)
        except ClaimLost as lost:
            say(TablesHeld(wanted.serial, "", str(lost)))
        else:
            say(TablesHeld(wanted.serial, named))
