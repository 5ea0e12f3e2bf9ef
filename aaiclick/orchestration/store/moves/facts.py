"""The data that ripples work with: what has ended, which nodes that concerns, and what is added to the jobs' rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, select

from aaiclick.ids import new_id
from aaiclick.orchestration.rules.graphs.graph import Plan
from aaiclick.orchestration.rules.states import FAILED_TASK, TaskStatus
from aaiclick.orchestration.rules.triggers import News
from aaiclick.orchestration.store.dialects.contract import EndedTask
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import tasks

RELEASE, DOOM, END, OPEN, DROWN, SPARE = "release", "doom", "end", "open", "drown", "spare"
"""Kinds of ripples. Nodes that wait for a node are told that it is complete, that it failed, or that a group which had
failed has now ended; members of a group are told that they may begin, that they never will, or are not needed.

One more kind, `transitions.STOP`, ends a whole job."""


@dataclass(slots=True)
class Sources:
    """The nodes that ended, with how many nodes wait for each, and the groups whose members are to be told; by kind."""

    release: dict[int, int] = field(default_factory=dict)
    skipped: set[int] = field(default_factory=set)
    """Those of `release` that are skipped tasks."""
    doom: dict[int, int] = field(default_factory=dict)
    failing: set[int] = field(default_factory=set)
    """Those of `doom` that are groups: they have failed, and tasks inside may still run."""
    end: dict[int, int] = field(default_factory=dict)
    open: set[int] = field(default_factory=set)
    drown: set[int] = field(default_factory=set)
    spare: set[int] = field(default_factory=set)
    opened: Counter[int] = field(default_factory=Counter)
    """Per group: the number of children that completed now."""
    failed: Counter[int] = field(default_factory=Counter)
    """Per group: the number of children that failed now."""
    finished: Counter[int] = field(default_factory=Counter)
    """Per group: the number of children that ended now."""

    def __bool__(self) -> bool:
        told = self.release or self.doom or self.end
        return bool(told or self.open or self.drown or self.spare or self.opened or self.failed or self.finished)


@dataclass(slots=True)
class Targets:
    """The nodes that are concerned, tasks and groups alike, and what each is told."""

    complete: Counter[int] = field(default_factory=Counter)
    """Per node: the number of inputs that are complete now."""
    skipped: Counter[int] = field(default_factory=Counter)
    """How many of these were skipped."""
    failed: set[int] = field(default_factory=set)
    """Nodes of which an input failed."""
    ended: Counter[int] = field(default_factory=Counter)
    """Per node: the number of inputs that failed and have ended now."""
    groups: set[int] = field(default_factory=set)
    """Those of all these nodes that are groups."""
    cancelled: Counter[int] = field(default_factory=Counter)
    """Per node: the number of inputs that were cancelled; only an input that is added now can be, from before."""
    ungated: set[int] = field(default_factory=set)
    """Nodes that the group around them no longer holds back."""
    doomed: set[int] = field(default_factory=set)
    """Tasks that will never run, whatever their trigger rule."""
    unneeded: set[int] = field(default_factory=set)
    """Tasks that are skipped, whatever their trigger rule."""
    drowned: set[int] = field(default_factory=set)
    spared: set[int] = field(default_factory=set)
    """`drowned` and `spared`: groups all of whose members are to be doomed, or skipped."""
    causes: dict[int, int] = field(default_factory=dict)
    """Per doomed or drowned node: the task whose failure caused it, where that is known from before."""

    def __bool__(self) -> bool:
        told = self.complete or self.failed or self.ended or self.cancelled or self.ungated
        return bool(told or self.doomed or self.unneeded or self.drowned or self.spared)

    def told(self) -> set[int]:
        """Return the nodes that are told of an input or of their gate."""
        return self.complete.keys() | self.failed | self.ended.keys() | self.cancelled.keys() | self.ungated

    def tell(self, node: int, kind: str, source: str, *, skipped: bool = False, failing: bool = False) -> None:
        """Note the end of one input of a node; `failing`: the input is a group that failed and may go on."""
        if kind == "group":
            self.groups.add(node)
        if source == RELEASE:
            self.complete[node] += 1
            if skipped:
                self.skipped[node] += 1
            return
        if source == DOOM:
            self.failed.add(node)
        if not failing:
            self.ended[node] += 1

    def news(self, node: int) -> News:
        """Return what a node is told of its inputs."""
        failed = node in self.failed
        return News(self.complete[node], self.skipped[node], int(failed), self.ended[node], self.cancelled[node])

    def add(self, other: Targets) -> None:
        """Add the other targets to these."""
        for name in ("complete", "skipped", "ended", "cancelled"):
            getattr(self, name).update(getattr(other, name))
        for name in ("failed", "groups", "ungated", "doomed", "unneeded", "drowned", "spared", "causes"):
            getattr(self, name).update(getattr(other, name))


CountNew = Callable[[], Awaitable[None]]


@dataclass(slots=True)
class Tally:
    """What one transaction adds to the jobs' rows, once, at its end."""

    counts: dict[int, Counter[str]] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    job_of: dict[int, int] = field(default_factory=dict)
    cause_of: dict[int, int] = field(default_factory=dict)
    """Per task or group that failed or will never begin: the task whose failure caused it."""
    left: int = 0
    """How many more nodes this transaction may tell; the rest is postponed."""
    count_new: CountNew | None = None
    """Adds new tasks to the job's counters. Called when all other rows are locked, since the job's is locked last, and
    before the ends of tasks are counted, since a job without open tasks would end."""

    def blame(self, node: int | None, cause: int) -> None:
        """Note the task whose failure is the cause; the first one counts."""
        if node is not None:
            self.cause_of.setdefault(node, cause)

    def add(self, ended: Iterable[EndedTask]) -> None:
        kinds = Counter((task.job_id, task.status, task.critical) for task in ended)
        for (job_id, status, critical), count in kinds.items():
            counts = self.counts.setdefault(job_id, Counter())
            counts["open_tasks"] -= count
            if status == TaskStatus.COMPLETED:
                counts["completed_tasks"] += count
            elif status == TaskStatus.SKIPPED:
                counts["skipped_tasks"] += count
            elif status in FAILED_TASK:
                counts["failed_tasks"] += count if status == TaskStatus.FAILED else 0
                counts["failed_critical"] += count if critical else 0


# ---------------------------------------------------------------- postponed ripples


async def postpone(session: Session, sources: Sources, tally: Tally) -> list[dict[str, Any]]:
    """Take out of the sources what exceeds this transaction's limit; return it as rows of `ripples`."""
    rows: list[dict[str, Any]] = []
    for kind, nodes in ((RELEASE, sources.release), (DOOM, sources.doom), (END, sources.end)):
        for node, count in sorted(nodes.items(), key=lambda item: item[1]):
            if count > tally.left:
                del nodes[node]
                rows.append(_ripple(kind, node, tally, node in sources.failing))
            else:
                tally.left -= count
    inside = sources.open | sources.drown | sources.spare
    if inside:
        counted = await session.rows(
            select(tasks.c.group_id, func.count().label("size"))
            .where(session.any_of(tasks.c.group_id, sorted(inside)))
            .group_by(tasks.c.group_id)
        )
        sizes: dict[int, int] = {row.group_id: row.size for row in counted}
        for kind, members in ((OPEN, sources.open), (DROWN, sources.drown), (SPARE, sources.spare)):
            for node in sorted(members, key=lambda group: sizes.get(group, 0)):
                if sizes.get(node, 0) > tally.left:
                    members.remove(node)
                    rows.append(_ripple(kind, node, tally, node in sources.failing))
                else:
                    tally.left -= sizes.get(node, 0)
    return rows


def _ripple(kind: str, node: int, tally: Tally, failing: bool) -> dict[str, Any]:
    return {
        "id": new_id(),
        "job_id": tally.job_of[node],
        "kind": kind,
        "node_id": node,
        "node_type": "group" if failing or kind not in (RELEASE, DOOM) else "node",
        "after_id": 0,
        "cause_id": tally.cause_of[node] if kind in (DOOM, DROWN) else None,
    }


def told_of(plan: Plan, around: Collection[int], causes: dict[int, int]) -> Targets:
    """Return what the nodes of a plan are told at once; `around`: the ids of groups among them."""
    targets = Targets(causes=causes)
    for node in plan.doomed:
        (targets.drowned if node in around else targets.doomed).add(node)
    for node in plan.unneeded:
        (targets.spared if node in around else targets.unneeded).add(node)
    for node, news in plan.stored_news.items():
        targets.complete[node] += news.complete
        targets.skipped[node] += news.skipped
        targets.ended[node] += news.ended
        targets.cancelled[node] += news.cancelled
        if news.failed:
            targets.failed.add(node)
        if node in around:
            targets.groups.add(node)
    return targets
