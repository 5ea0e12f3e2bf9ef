"""The questions of a run to its worker, asked from the process that runs the body. A Channel carries them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Protocol

from aaiclick.data.clients.opening import borrow_only
from aaiclick.errors import ClaimLost
from aaiclick.ids import borrow_ids
from aaiclick.orchestration.execution.executors.questions import (
    Answer,
    CallbackFound,
    CallbackWanted,
    EngineWanted,
    Ids,
    IdsWanted,
    Question,
    ResultFound,
    ResultWanted,
    SecretsFound,
    Slots,
    SlotsWanted,
    TablesHeld,
    TablesWanted,
)
from aaiclick.orchestration.models import CacheAnswer, CacheKey, Claim
from aaiclick.telemetry import masks


class Channel(Protocol):
    """Carries messages to the worker. Safe for threads."""

    def ask(self, question: Question) -> Answer:
        """Return the worker's answer. Raises ConnectionError if there will be none."""

    def say(self, message: EngineWanted) -> None:
        """Send a message that has no answer."""


class RunRequests:
    """Asks the worker over a Channel. It implements RunServices."""

    def __init__(self, line: Channel) -> None:
        self._line = line
        self._serials = itertools.count(1)
        self.loop_goes_on = False
        """Whether a body is running, so that its loop must not be blocked while an answer is awaited."""

    def serve_process(self) -> None:
        """Let all code of this process get ids from the worker, request the engine, and have secrets masked."""
        borrow_only(self.want_engine)
        borrow_ids(self.want_ids)
        masks.tell_new_ones(self.want_masks)

    def want_engine(self) -> None:
        """Ask the worker to have the embedded engine served."""
        self._line.say(EngineWanted())

    def want_ids(self, count: int) -> list[int]:
        """Return up to `count` ids from the worker. Processes that made ids themselves could make the same ones."""
        answer = self._line.ask(IdsWanted(next(self._serials), count))
        assert isinstance(answer, Ids)
        return answer.ids

    def want_masks(self, values: list[str]) -> None:
        """Ask the worker to mask these values, and wait until it does, before they are used."""
        self._line.ask(SecretsFound(next(self._serials), values))

    async def hold(self, claim: Claim, tables: Sequence[str]) -> str:
        """Ask the worker to register tables for the run. Return the name of this installation."""
        answer = await self._ask(TablesWanted(next(self._serials), list(tables)))
        assert isinstance(answer, TablesHeld)
        if answer.refusal:
            raise ClaimLost(task_id=claim.task_id, epoch=claim.epoch, move="hold on tables")
        return answer.installation

    async def recall(self, claim: Claim, key: CacheKey) -> CacheAnswer:
        """Ask for the result that is remembered under this key."""
        answer = await self._ask(ResultWanted(next(self._serials), key))
        assert isinstance(answer, ResultFound)
        if answer.refusal:
            raise ClaimLost(task_id=claim.task_id, epoch=claim.epoch, move="question for a remembered result")
        return answer.answer

    async def slots(self) -> int:
        """Return how many bodies all live workers together can run at a time."""
        answer = await self._ask(SlotsWanted(next(self._serials)))
        assert isinstance(answer, Slots)
        return answer.count

    async def callback(self, claim: Claim, digest: str) -> str | None:
        """Accept callbacks with the token of this digest, if it is not empty; return what has been called back."""
        answer = await self._ask(CallbackWanted(next(self._serials), digest))
        assert isinstance(answer, CallbackFound)
        if answer.refusal:
            raise ClaimLost(task_id=claim.task_id, epoch=claim.epoch, move="callback")
        return answer.body

    async def _ask(self, question: Question) -> Answer:
        return await asyncio.to_thread(self._line.ask, question) if self.loop_goes_on else self._line.ask(question)
