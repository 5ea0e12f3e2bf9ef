"""What a run asks of its worker, from where its body runs; how the questions get there is a Line's to know."""

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
    EngineWanted,
    Ids,
    IdsWanted,
    Question,
    SecretsFound,
    Slots,
    SlotsWanted,
    TablesHeld,
    TablesWanted,
)
from aaiclick.orchestration.models import Claim
from aaiclick.telemetry import masks


class Channel(Protocol):
    """The way to the worker, for any thread."""

    def ask(self, question: Question) -> Answer:
        """Return the worker's answer; ConnectionError if there will be none."""

    def say(self, message: EngineWanted) -> None:
        """Tell the worker what needs no answer."""


class RunRequests:
    """Asks the worker over a line. It is a RunServices."""

    def __init__(self, line: Channel) -> None:
        self._line = line
        self._serials = itertools.count(1)
        self.loop_goes_on = False
        """Whether a body has begun: its loop must go on while an answer is awaited."""

    def serve_process(self) -> None:
        """Let all of this process ask the worker for ids, for the engine, and for masks."""
        borrow_only(self.want_engine)
        borrow_ids(self.want_ids)
        masks.tell_new_ones(self.want_masks)

    def want_engine(self) -> None:
        """Ask the worker to have the embedded engine served."""
        self._line.say(EngineWanted())

    def want_ids(self, count: int) -> list[int]:
        """Return ids from the worker: two processes that made them themselves could make the same."""
        answer = self._line.ask(IdsWanted(next(self._serials), count))
        assert isinstance(answer, Ids)
        return answer.ids

    def want_masks(self, values: list[str]) -> None:
        """Ask the worker to mask values in the log before anything is done with them."""
        self._line.ask(SecretsFound(next(self._serials), values))

    async def hold(self, claim: Claim, tables: Sequence[str]) -> str:
        """Ask the worker to hold tables for the run; return what the installation is called."""
        answer = await self._ask(TablesWanted(next(self._serials), list(tables)))
        assert isinstance(answer, TablesHeld)
        if answer.refusal:
            raise ClaimLost(task_id=claim.task_id, epoch=claim.epoch, move="hold on tables")
        return answer.installation

    async def slots(self) -> int:
        """Return how many bodies run at a time, in all workers."""
        answer = await self._ask(SlotsWanted(next(self._serials)))
        assert isinstance(answer, Slots)
        return answer.count

    async def _ask(self, question: Question) -> Answer:
        return await asyncio.to_thread(self._line.ask, question) if self.loop_goes_on else self._line.ask(question)
