"""One job on a random way through the store and through a model that keeps no counters, compared after each step."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable

from sqlalchemy import select

from aaiclick.errors import AaiclickError
from aaiclick.orchestration.factories import new_job
from aaiclick.orchestration.models import Claim, Done, Group, Task
from aaiclick.orchestration.models.node import Edge, Node
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.rules.triggers import When
from aaiclick.orchestration.store.claims.reports import take_reports
from aaiclick.orchestration.store.moves import queue, ripples
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import groups, jobs, ready, tasks
from tests.support.naive import ENDED, NaiveJob
from tests.support.orchestra import Orchestra, done, failure, make

STEPS = 60


def may_be_either(model: NaiveJob, task: int, status: str) -> bool:
    """Whether it is doomed and not needed, by what was told in the same breath, and is stored as the other one."""
    return status != model.status[task] and model.ends_of(task) == {"upstream_failed", "skipped"}


class Walk:
    """One job on its random way, in the store and in the model."""

    def __init__(self, stage: Orchestra, seed: int) -> None:
        self.stage = stage
        self.dice = random.Random(seed)
        self.model = NaiveJob()
        self.nodes: dict[int, Node] = {}
        self.held: dict[int, Claim] = {}
        self.stale: list[Claim] = []
        self.job = new_job(f"seed {seed}")
        self.reserved_for = self.reservations = 0
        self.log: list[str] = []
        self.outcomes: Counter[str] = Counter()
        self.rippled = False
        """Something was told later than the model knew of it."""

    # ------------------------------------------------------------ graphs

    def grow(self, size: int) -> Submission:
        """Some new tasks and groups, in groups new and old, and edges among all."""
        new_groups: list[Group] = []
        new_tasks: list[Task] = []
        for _ in range(self.dice.randint(0, size // 2)):
            new_groups.append(
                Group(
                    f"g{len(self.nodes) + len(new_groups)}",
                    parent_group_id=self.some_group(new_groups),
                    when=some_rule(self.dice),
                )
            )
        for _ in range(self.dice.randint(0, size)):
            number = len(self.nodes) + len(new_groups) + len(new_tasks)
            new_tasks.append(
                make(
                    f"t{number}",
                    group_id=self.some_group(new_groups),
                    retry=RetryPolicy(self.dice.choice([0, 0, 1, 2]), delay_s=self.dice.choice([0.0, 60.0])),
                    priority=self.dice.choice([0, 0, 0, 1, -1]),
                    critical=self.dice.random() < 0.8,
                    when=some_rule(self.dice),
                )
            )
        everyone = sorted((*self.nodes.values(), *new_groups, *new_tasks), key=lambda node: node.id)
        edges: list[Edge] = []
        for _ in range(self.dice.randint(0, size) if len(everyone) > 1 else 0):
            previous, following = self.dice.sample(everyone, 2)
            if self.dice.random() < 0.9 and previous.id > following.id:  # mostly forwards, so that few are cycles
                previous, following = following, previous
            edges.append(Edge(previous, following))
        return Submission(self.job.id, new_tasks, new_groups, edges)

    def some_group(self, new: list[Group]) -> int | None:
        stored = [node.id for node in self.nodes.values() if isinstance(node, Group)]
        return self.dice.choice([None, *stored, *(group.id for group in new)])

    async def begin(self) -> None:
        while True:
            graph = self.grow(10)
            graph.new_job = self.job
            if not graph.tasks or self.model.with_all(graph).has_cycle():
                continue
            await self.stage.coordinator.submit(graph)
            self.took(graph)
            return

    def took(self, graph: Submission) -> None:
        rules = {node.name: str(node.when) for node in (*graph.tasks, *graph.groups)}
        self.log.append(f"rules {rules}")
        self.model.add(graph)
        self.nodes.update((node.id, node) for node in (*graph.tasks, *graph.groups))

    # ------------------------------------------------------------ steps

    async def apply(self) -> None:
        graph = self.grow(self.dice.choice([1, 3, 6]))
        rippling = bool(await self.stage.ripples())
        expected = None if rippling else self.model.refusal(graph)
        said = f"{graph.tasks} {graph.groups} {[(str(edge.previous), str(edge.next)) for edge in graph.edges]}"
        refused: AaiclickError | None = None
        try:
            await self.stage.coordinator.submit(graph)
        except AaiclickError as error:
            refused = error
        outcome = None if refused is None else type(refused).__name__
        self.outcomes[outcome or "applied"] += 1
        self.log.append(f"apply {said}: {refused or 'taken'}")
        assert rippling or outcome == expected
        if refused is None:
            self.took(graph)

    async def claim(self) -> None:
        self.reserved_for = (await self.stage.job(self.job)).reserved_for  # a job that had ended is nobody's again
        claims = await self.stage.claim(self.dice.choice([1, 2, 5]), reserved_for=self.reserved_for)
        self.log.append(f"claim {[claim.name for claim in claims]}")
        assert {claim.task_id for claim in claims} <= self.model.ready()
        self.model.claim(claim.task_id for claim in claims)
        self.held.update((claim.task_id, claim) for claim in claims)

    async def report(self) -> None:
        """Some complete, some fail; what follows from it may be left for later."""
        chosen = self.dice.sample(sorted(self.held), min(len(self.held), self.dice.choice([1, 1, 2, 4])))
        reports = [done(c) if self.dice.random() < 0.75 else failure(c) for c in map(self.held.pop, chosen)]
        self.log.append(f"report {[(self.nodes[r.task_id].name, type(r).__name__) for r in reports]}")
        receipt = await self.stage.database.transact(
            lambda session: take_reports(session, self.stage.worker, reports, lambda: 1.0)
        )
        assert receipt.accepted == {(report.task_id, report.epoch) for report in reports}
        for report in reports:
            task = await self.stage.task(self.nodes[report.task_id])  # type: ignore[arg-type]
            if isinstance(report, Done):
                self.model.end(task.id, "completed")
            elif task.attempt > task.max_retries:
                self.model.end(task.id, "failed")
            else:
                self.model.give_back(task.id, delayed=task.run_after is not None)

    async def release(self) -> None:
        chosen = [self.held.pop(task) for task in self.dice.sample(sorted(self.held), min(len(self.held), 2))]
        self.log.append(f"release {[claim.name for claim in chosen]}")
        assert await self.stage.coordinator.release(self.stage.worker, chosen) == {c.task_id for c in chosen}
        self.stale += chosen
        for claim in chosen:
            self.model.give_back(claim.task_id)

    async def come_late(self) -> None:
        if self.stale:
            late = self.dice.choice(self.stale)
            receipt = await self.stage.report(done(late) if self.dice.random() < 0.5 else failure(late))
            assert not receipt.accepted

    async def time_passes(self) -> None:
        self.log.append("time passes")
        await self.stage.let_time_pass()
        await self.stage.database.transact(queue.promote_due)
        self.model.delayed.clear()

    async def ripple(self) -> None:
        self.log.append(f"ripple {await self.stage.ripples()}")
        await self.stage.database.transact(ripples.work_one_ripple)

    async def reserve(self) -> None:
        self.log.append("reserve")
        self.reservations += 1
        await self.stage.coordinator.reserve(self.job.id, self.reservations)

    async def cancel(self) -> None:
        if self.dice.random() < 0.1:
            self.log.append("cancel")
            rippling = bool(await self.stage.ripples())
            was = self.model.job_status()
            cancelled = await self.stage.coordinator.cancel(self.job.id)
            assert rippling or cancelled == (was not in ENDED)
            if cancelled:
                self.stale += self.held.values()
                self.held.clear()
                self.model.cancel()
                if rippling:  # whom doom had not reached was cancelled
                    statuses = await self.stage.rows(select(tasks.c.id).where(tasks.c.status == "cancelled"))
                    self.model.status.update({row.id: "cancelled" for row in statuses})

    def choose(self) -> Callable[[], Awaitable[None]]:
        return self.dice.choices(list(self.weights()), list(self.weights().values()))[0]

    def weights(self) -> dict[Callable[[], Awaitable[None]], float]:
        return {
            self.claim: 5,
            self.report: 6,
            self.apply: 5,
            self.ripple: 3,
            self.release: 1,
            self.come_late: 1,
            self.time_passes: 1,
            self.reserve: 0.5,
            self.cancel: 0.5,
        }

    # ------------------------------------------------------------ checks

    async def check(self) -> None:
        rippling = bool(await self.stage.ripples())
        wrong = await self.stage.violations(at_rest=not rippling)
        assert not wrong, f"violations: {wrong}"
        self.rippled |= rippling
        if not rippling:
            await self.stage.database.read(self.compare)
            self.rippled = False

    async def compare(self, session: Session) -> None:
        statuses = {row.id: row.status for row in await session.rows(select(tasks.c.id, tasks.c.status))}
        if self.rippled or any(may_be_either(self.model, task, status) for task, status in statuses.items()):
            await self.adopt(session, statuses)
        named = {self.nodes[task].name: (status, self.model.status[task]) for task, status in statuses.items()}
        differ = {name: pair for name, pair in named.items() if pair[0] != pair[1]}
        assert not differ, f"stored and expected: {differ}"
        assert {row.task_id for row in await session.rows(select(ready.c.task_id))} == self.model.ready()
        assert await session.scalar(select(jobs.c.status)) == self.model.job_status()

    async def adopt(self, session: Session, statuses: dict[int, str]) -> None:
        """Of what was both doomed and not needed, whichever was told first counts; all else must follow from it."""
        unrun = {"pending", "upstream_failed", "skipped"}
        model = self.model
        model.status |= {
            task: status
            for task, status in statuses.items()
            if {status, model.status[task]} <= unrun and status != model.status[task]
        }
        for table in (tasks, groups):
            for row in await session.rows(select(table.c.id, table.c.awaited_count, table.c.amiss)):
                if not model.rules[row.id].startswith("one_"):
                    continue
                model.met.discard(row.id)
                model.never.pop(row.id, None)
                if row.awaited_count == 0:
                    model.met.add(row.id)
                elif row.awaited_count < 0:
                    model.never[row.id] = "upstream_failed" if row.amiss else "skipped"
        model.settle()

    async def finish(self) -> None:
        """Whatever is left can be brought to its end."""
        while self.model.job_status() not in ENDED:
            await self.stage.coordinator.reconcile()
            await self.time_passes()
            await self.claim()
            await self.stage.complete(*self.held.values())
            for task in self.held:
                self.model.end(task, "completed")
            self.held.clear()
            await self.check()
        await self.stage.coordinator.reconcile()
        assert not await self.stage.violations()
        assert (await self.stage.job(self.job)).status == self.model.job_status()


def some_rule(dice: random.Random) -> When:
    """Mostly the default."""
    return dice.choice(list(When)) if dice.random() < 0.4 else When.ALL_COMPLETED


async def walk(way: Walk) -> Counter[str]:
    """Take one job through its steps; what led to a failure is printed with it."""
    await way.begin()
    try:
        await way.check()
        for _ in range(STEPS):
            await way.choose()()
            await way.check()
        await way.finish()
    except BaseException:
        print(f"{way.job.name}:", *way.log, sep="\n  ")
        raise
    return way.outcomes
