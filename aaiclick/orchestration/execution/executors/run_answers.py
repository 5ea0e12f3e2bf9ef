"""The worker's answers to the questions of a running body (`questions`), for any transport."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from aaiclick.data.clients.opening import start_owner
from aaiclick.errors import ClaimLost
from aaiclick.ids import BLOCK_MAX, new_ids
from aaiclick.orchestration.execution.executors.questions import (
    Answer,
    CallbackFound,
    CallbackWanted,
    EngineWanted,
    Ids,
    IdsWanted,
    ResultFound,
    ResultWanted,
    SecretsFound,
    SecretsMasked,
    Slots,
    SlotsWanted,
    TablesHeld,
    TablesWanted,
)
from aaiclick.orchestration.execution.executors.wire import Broken, Message
from aaiclick.orchestration.execution.runs.run_services import RunServices
from aaiclick.orchestration.models import CacheAnswer, Claim
from aaiclick.telemetry import masks

Say = Callable[[Answer], None]
"""Sends an answer to the process that runs the body."""


class RunAnswers:
    """Answers the questions of one run through the worker's services. Without services, tables are always granted."""

    def __init__(self, claim: Claim, services: RunServices | None) -> None:
        self._claim, self._services = claim, services
        self._asking: set[asyncio.Task[None]] = set()

    def end(self) -> None:
        """Cancel pending answers: the run is over."""
        for asking in self._asking:
            asking.cancel()

    def answer(self, message: Message, say: Say) -> None:
        """Handle a message of the run. The answer is sent at once, or when the services have answered.

        Raises Broken for a message that a run does not send.
        """
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
            case ResultWanted():
                self._ask_services(self._recall(message, say))
            case SlotsWanted(serial=serial):
                self._ask_services(self._count_slots(serial, say))
            case CallbackWanted():
                self._ask_services(self._find_callback(message, say))
            case _:
                raise Broken(f"a run sent an unexpected {type(message).__name__}")

    def _ask_services(self, work: Coroutine[Any, Any, None]) -> None:
        asking = asyncio.get_running_loop().create_task(work)
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)

    async def _recall(self, wanted: ResultWanted, say: Say) -> None:
        if self._services is None:
            say(ResultFound(wanted.serial, CacheAnswer()))
            return
        try:
            answer = await self._services.recall(self._claim, wanted.key)
        except ClaimLost as lost:
            say(ResultFound(wanted.serial, CacheAnswer(), str(lost)))
        else:
            say(ResultFound(wanted.serial, answer))

    async def _count_slots(self, serial: int, say: Say) -> None:
        say(Slots(serial, 0 if self._services is None else await self._services.slots()))

    async def _find_callback(self, wanted: CallbackWanted, say: Say) -> None:
        if self._services is None:
            say(CallbackFound(wanted.serial, None, "this worker has no server"))
            return
        try:
            say(CallbackFound(wanted.serial, await self._services.callback(self._claim, wanted.digest)))
        except ClaimLost as lost:
            say(CallbackFound(wanted.serial, None, str(lost)))

    async def _hold(self, wanted: TablesWanted, say: Say) -> None:
        """Register tables for the body, which has no connection to the database."""
        if self._services is None:
            say(TablesHeld(wanted.serial, ""))
            return
        try:
            named = await self._services.hold(self._claim, wanted.tables)
        except ClaimLost as lost:
            say(TablesHeld(wanted.serial, "", str(lost)))
        else:
            say(TablesHeld(wanted.serial, named))
