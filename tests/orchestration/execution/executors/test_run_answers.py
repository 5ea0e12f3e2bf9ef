"""What a run asks is answered whatever its messages travel over."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from aaiclick.errors import ClaimLost
from aaiclick.orchestration.execution.executors.questions import (
    Answer,
    CallbackFound,
    CallbackWanted,
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
from aaiclick.orchestration.execution.executors.run_answers import RunAnswers
from aaiclick.orchestration.execution.executors.wire import Broken, Ready
from aaiclick.orchestration.models import CacheAnswer, CacheKey, Claim
from aaiclick.telemetry.masks import is_mentioned
from tests.support import bodies
from tests.support.bodies import claim_of


class Services:
    """Holds tables of one task only, and never knows how many slots there are."""

    def __init__(self, task_id: int) -> None:
        self.task_id = task_id
        self.given_up = asyncio.Event()

    async def hold(self, claim: Claim, tables: Sequence[str]) -> str:
        if claim.task_id != self.task_id:
            raise ClaimLost(task_id=claim.task_id, epoch=claim.epoch, move="hold on tables")
        return f"held {len(tables)}"

    async def callback(self, claim: Claim, digest: str) -> str | None:
        if claim.task_id != self.task_id:
            raise ClaimLost(task_id=claim.task_id, epoch=claim.epoch, move="callback")
        return f"called back for {digest}"

    async def recall(self, claim: Claim, key: CacheKey) -> CacheAnswer:
        if claim.task_id != self.task_id:
            raise ClaimLost(task_id=claim.task_id, epoch=claim.epoch, move="question")
        return CacheAnswer(hit=True, result_json=key.digest)

    async def slots(self) -> int:
        try:
            await asyncio.Event().wait()
        finally:
            self.given_up.set()
        return 0


class Line(asyncio.Queue[Answer]):
    """What was said to the run."""


@pytest.fixture
def line() -> Line:
    return Line()


def test_ids_and_masks_are_there_at_once(line: Line) -> None:
    answers = RunAnswers(claim_of(bodies.nothing), None)
    answers.answer(IdsWanted(1, 20), line.put_nowait)
    ids = line.get_nowait()
    assert isinstance(ids, Ids)
    assert (ids.serial, len(set(ids.ids))) == (1, 20)
    answers.answer(SecretsFound(2, ["a-value-that-nobody-shows"]), line.put_nowait)
    assert line.get_nowait() == SecretsMasked(2)
    assert is_mentioned("a-value-that-nobody-shows")


async def test_the_services_is_asked_for_the_run_that_asks(line: Line) -> None:
    mine, others = claim_of(bodies.nothing), claim_of(bodies.nothing)
    RunAnswers(mine, Services(mine.task_id)).answer(TablesWanted(3, ["a", "b"]), line.put_nowait)
    assert await line.get() == TablesHeld(3, "held 2")
    RunAnswers(others, Services(mine.task_id)).answer(TablesWanted(4, ["a"]), line.put_nowait)
    refused = await line.get()
    assert isinstance(refused, TablesHeld)
    assert str(others.task_id) in refused.refusal


async def test_a_remembered_result_is_asked_for_the_run_that_asks(line: Line) -> None:
    mine, others, key = claim_of(bodies.nothing), claim_of(bodies.nothing), CacheKey("d", "a.b", "i")
    RunAnswers(mine, Services(mine.task_id)).answer(ResultWanted(3, key), line.put_nowait)
    assert await line.get() == ResultFound(3, CacheAnswer(hit=True, result_json="d"))
    RunAnswers(others, Services(mine.task_id)).answer(ResultWanted(4, key), line.put_nowait)
    refused = await line.get()
    assert isinstance(refused, ResultFound)
    assert str(others.task_id) in refused.refusal
    RunAnswers(mine, None).answer(ResultWanted(5, key), line.put_nowait)
    assert await line.get() == ResultFound(5, CacheAnswer())


async def test_without_a_services_all_is_granted(line: Line) -> None:
    answers = RunAnswers(claim_of(bodies.nothing), None)
    answers.answer(TablesWanted(5, ["a"]), line.put_nowait)
    answers.answer(SlotsWanted(6), line.put_nowait)
    assert [await line.get(), await line.get()] == [TablesHeld(5, ""), Slots(6, 0)]


async def test_a_callback_is_looked_for_by_the_run_that_asks(line: Line) -> None:
    mine, others = claim_of(bodies.nothing), claim_of(bodies.nothing)
    RunAnswers(mine, Services(mine.task_id)).answer(CallbackWanted(3, "d"), line.put_nowait)
    assert await line.get() == CallbackFound(3, "called back for d")
    for services in (Services(mine.task_id), None):
        RunAnswers(others, services).answer(CallbackWanted(4, "d"), line.put_nowait)
        refused = await line.get()
        assert isinstance(refused, CallbackFound)
        assert refused.refusal


async def test_what_is_on_its_way_ends_with_the_run(line: Line) -> None:
    claim = claim_of(bodies.nothing)
    services = Services(claim.task_id)
    answers = RunAnswers(claim, services)
    answers.answer(SlotsWanted(7), line.put_nowait)
    await asyncio.sleep(0)
    answers.end()
    await services.given_up.wait()
    assert line.empty()


def test_what_no_run_says_is_refused(line: Line) -> None:
    with pytest.raises(Broken):
        RunAnswers(claim_of(bodies.nothing), None).answer(Ready(), line.put_nowait)
