"""Trigger rules, with two transactions forced to meet: a model without counters says what must come of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from sqlalchemy import select

from aaiclick.orchestration.gathering import gather
from aaiclick.orchestration.models import Claim, Group, Job, Report
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.rules.triggers import When
from aaiclick.orchestration.store.claims.claiming import claim_tasks
from aaiclick.orchestration.store.claims.reports import take_reports
from aaiclick.orchestration.store.moves import ripples
from aaiclick.orchestration.store.moves.clears import clear_tasks
from aaiclick.orchestration.store.moves.early_endings import cancel_job
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events
from tests.support import naive
from tests.support.naive import NaiveJob
from tests.support.orchestra import Orchestra, done, failure, make, orchestra

RULES = pytest.mark.parametrize("when", [rule for rule in When if rule != When.ALL_COMPLETED])
ENDS: list[tuple[bool, bool]] = [(True, True), (True, False), (False, True), (False, False)]
"""Whether the one, and the other, completes."""

pytestmark = pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)

Work = Callable[[Session], Awaitable[object]]


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened
        assert not await opened.violations(at_rest=False)
        await opened.drain()
        assert not await opened.violations()


class Scene:
    """One job in the store and in the model; all tasks have names of their own."""

    def __init__(self, stage: Orchestra, job: Job, model: NaiveJob, ids: dict[str, int]) -> None:
        self.stage, self.job, self.model, self.ids = stage, job, model, ids
        self.held: dict[str, Claim] = {}

    @classmethod
    async def begin(cls, stage: Orchestra, *nodes: Node) -> Scene:
        """Store these, and claim what may begin."""
        model, whole = NaiveJob(), gather(0, nodes)
        model.add(whole)
        job = await stage.submit(*nodes)
        scene = cls(stage, job, model, {node.name: node.id for node in whole.tasks})
        await scene.claim()
        return scene

    async def claim(self) -> None:
        claims = await self.stage.claim_named()
        assert {claim.task_id for claim in claims.values()} == self.model.ready()
        self.held |= claims
        self.model.claim(claim.task_id for claim in claims.values())

    # ------------------------------------------------------------ what two do at once

    def ends(self, name: str, completes: bool) -> Work:
        claim = self.held.pop(name)
        report: Report = done(claim) if completes else failure(claim)

        async def work(session: Session) -> object:
            receipt = await take_reports(session, self.stage.worker, [report], lambda: 1.0)
            if receipt.accepted:
                self.model.end(claim.task_id, "completed" if completes else "failed")
            return bool(receipt.accepted)

        return work

    def clears(self, name: str) -> Work:
        async def work(session: Session) -> object:
            cleared = await clear_tasks(session, [self.ids[name]])
            naive.clear(self.model, naive.downstream(self.model, [self.ids[name]]))
            return cleared.task_ids

        return work

    def cancels(self) -> Work:
        async def work(session: Session) -> object:
            cancelled = await cancel_job(session, self.job.id)
            if cancelled:
                self.model.cancel()
            return cancelled

        return work

    async def at_once(self, *works: Work) -> list[object]:
        """The second comes to a lock of the first, which then commits; gives what they give."""
        first, second = works
        async with self.stage.transaction() as session:
            given = await first(session)
            waiting = asyncio.create_task(self.stage.database.transact(second))
            await self.stage.until_waiting()
        return [given, await waiting]

    # ------------------------------------------------------------ what must be so

    async def check(self) -> None:
        """Once all is told, all stand as the model says, and the counters hold; then it can be brought to its end."""
        await self.compare()
        while self.model.ready() or self.held:
            await self.claim()
            for name in sorted(self.held):
                await self.stage.database.transact(self.ends(name, completes=True))
            await self.compare()

    async def compare(self) -> None:
        await self.stage.coordinator.reconcile()
        assert not await self.stage.violations()
        expected = {name: self.model.status[task] for name, task in self.ids.items()}
        assert await self.stage.statuses(self.job) == expected
        assert set(await self.stage.ready_names()) == {
            name for name, task in self.ids.items() if task in self.model.ready()
        }
        assert (await self.stage.job(self.job)).status == self.model.job_status()

    async def times_claimed(self, name: str) -> int:
        claims = select(events.c.id).where(events.c.task_id == self.ids[name], events.c.move == "claim")
        return len(await self.stage.rows(claims))


def behind_two(when: When) -> list[Node]:
    """A task that waits for two by this rule, one that waits for it, and a group that waits for the two by the rule."""
    one, two = make("one", critical=False), make("two", critical=False)
    last, after, group = make("last", when=when), make("after", when="always"), Group("g", when=when)
    last << [one, two]
    last >> after
    group << [one, two]
    return [one, two, last, after, group, make("inside", group_id=group.id)]


# ---------------------------------------------------------------- two ends


@RULES
async def test_two_inputs_end_at_once(stage: Orchestra, when: When) -> None:
    for one, two in ENDS:
        scene = await Scene.begin(stage, *behind_two(when))
        assert await scene.at_once(scene.ends("one", one), scene.ends("two", two)) == [True, True]
        await scene.check()
        assert await scene.times_claimed("last") <= 1


@pytest.mark.parametrize("when", [When.ONE_COMPLETED, When.ONE_FAILED])
async def test_what_one_input_lets_run_is_claimed_while_the_other_ends(stage: Orchestra, when: When) -> None:
    for completes in (True, False):
        scene = await Scene.begin(stage, *behind_two(when))
        await stage.database.transact(scene.ends("one", when == When.ONE_COMPLETED))

        async def claims(session: Session, scene: Scene = scene) -> object:
            taken = await claim_tasks(
                session, worker_id=stage.worker, reserved_for=0, limit=2, after=None, started={scene.job.id}
            )
            scene.held |= {claim.name: claim for claim in taken}
            scene.model.claim(claim.task_id for claim in taken)
            return sorted(claim.name for claim in taken)

        assert await scene.at_once(claims, scene.ends("two", completes)) == [["inside", "last"], True]
        await scene.check()
        assert await scene.times_claimed("last") == 1


# ---------------------------------------------------------------- groups


def behind_a_group(when: When) -> list[Node]:
    """A group of two tasks, one of them deeper, and those who wait for it by this rule."""
    outer = Group("outer")
    inner = Group("inner", parent_group_id=outer.id)
    one = make("one", group_id=outer.id, critical=False)
    two = make("two", group_id=inner.id, critical=False)
    last, group = make("last", when=when), Group("g", when=when)
    outer >> [last, group]
    return [outer, inner, one, two, last, group, make("inside", group_id=group.id)]


@RULES
async def test_a_group_ends_while_a_member_fails(stage: Orchestra, when: When) -> None:
    for ends in ((("one", False), ("two", True)), (("two", True), ("one", False)), (("one", False), ("two", False))):
        scene = await Scene.begin(stage, *behind_a_group(when))
        assert await scene.at_once(*(scene.ends(*end) for end in ends)) == [True, True]
        await scene.check()


@RULES
async def test_an_input_ends_while_a_step_tells_of_another(
    stage: Orchestra, when: When, monkeypatch: pytest.MonkeyPatch
) -> None:
    for one, two in ENDS:
        scene = await Scene.begin(stage, *behind_two(when))
        with monkeypatch.context() as patched:
            patched.setattr(ripples, "STEP", 1)
            await stage.database.transact(scene.ends("one", one))
        assert await stage.ripples()
        assert (await scene.at_once(ripples.work_one_ripple, scene.ends("two", two)))[1] is True
        await scene.check()


# ---------------------------------------------------------------- cancels


@RULES
async def test_a_cancel_and_the_end_of_an_input(stage: Orchestra, when: When) -> None:
    for completes in (True, False):
        scene = await Scene.begin(stage, *behind_two(when))
        assert await scene.at_once(scene.ends("one", completes), scene.cancels()) == [True, True]
        assert not await stage.database.transact(scene.ends("two", completes))
        await scene.check()
        scene = await Scene.begin(stage, *behind_two(when))
        assert await scene.at_once(scene.cancels(), scene.ends("one", completes)) == [True, False]
        scene.held.clear()
        await scene.check()


# ---------------------------------------------------------------- clears


@RULES
async def test_one_input_is_cleared_while_the_other_ends(stage: Orchestra, when: When) -> None:
    for one, two in ENDS:
        for clear_first in (True, False):
            scene = await Scene.begin(stage, *behind_two(when))
            await stage.database.transact(scene.ends("one", one))
            works = [scene.clears("one"), scene.ends("two", two)]
            await scene.at_once(*(works if clear_first else reversed(works)))
            await scene.compare()
            await scene.claim()
            await stage.database.transact(scene.ends("one", not one))
            await scene.check()


@RULES
async def test_a_member_is_cleared_while_its_group_ends(stage: Orchestra, when: When) -> None:
    for clear_first in (True, False):
        scene = await Scene.begin(stage, *behind_a_group(when))
        await stage.database.transact(scene.ends("one", False))
        works = [scene.clears("one"), scene.ends("two", True)]
        await scene.at_once(*(works if clear_first else reversed(works)))
        await scene.check()
