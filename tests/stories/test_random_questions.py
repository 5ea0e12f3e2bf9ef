"""«Why is it pending?», asked of every task of random graphs after random steps, answers as the model does."""

from __future__ import annotations

import os

import pytest

from aaiclick.orchestration.rules.pending import Reason, judge
from aaiclick.orchestration.store.moves import ripples
from aaiclick.orchestration.store.reading import pending
from aaiclick.orchestration.store.session import Session
from tests.support.band import band as band
from tests.support.orchestra import Orchestra
from tests.support.walk import Walk, walk

SEEDS = range(2000, 2200 if "TEST_LONG" in os.environ else 2004)


class Asking(Walk):
    """A walk on which every task is asked about after each step."""

    async def compare(self, session: Session) -> None:
        await super().compare(session)
        self.reserved_for = (await self.stage.job(self.job)).reserved_for
        for task in self.model.status:
            await self._ask(session, task)

    async def _ask(self, session: Session, task: int) -> None:
        facts = await pending.read_facts(session, task)
        assert facts is not None
        answer, status = judge(facts), self.model.status[task]
        named = {blocker.id for blocker in answer.waits_for}
        if status == "upstream_failed":
            assert answer.reason is Reason.ENDED
            assert named <= {node for node in self.model.predecessors(task) if self.model.has_failed(node)}
            assert named or not self.model.failed_before(task)
        elif status != "pending":
            assert answer.reason is (Reason.HELD if status == "claimed" else Reason.ENDED)
        elif self.model.job_status() in ("cancelled", "failed", "completed"):
            assert answer.reason is Reason.JOB_ENDED
        else:
            still = self.model.waits_for(task)
            assert (named, answer.more) == (still, 0)
            assert answer.reason in self._reasons(task, bool(still))
        self.outcomes[f"why: {answer.reason}"] += 1

    def _reasons(self, task: int, waits: bool) -> set[Reason]:
        """What may be the answer for a task that is pending in a job that goes on."""
        if waits:
            return {Reason.WAITS}
        if task in self.model.delayed:
            return {Reason.DELAYED}
        return {Reason.RESERVED} if self.reserved_for else {Reason.BUSY, Reason.IN_LINE}


@pytest.fixture
def stage(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> Orchestra:
    monkeypatch.setattr(ripples, "STEP", 3)
    monkeypatch.setattr(pending, "LISTED_MAX", 1_000)
    return band


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
@pytest.mark.parametrize("seed", SEEDS)
async def test_why_is_answered_as_the_model_does(stage: Orchestra, seed: int) -> None:
    assert (await walk(Asking(stage, seed)))["why: ended"]
