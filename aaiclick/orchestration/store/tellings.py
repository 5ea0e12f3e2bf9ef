"""What has ended, whom it concerns, and what the jobs will learn of it: the plain facts that ripples work with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, select

from aaiclick.ids import new_id
from aaiclick.orchestration.rules.states import FAILED_TASK, TaskStatus
from aaiclick.orchestration.store.dialects.contract import EndedTask
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import tasks

RELEASE, DOOM, OPEN, DROWN = "release", "doom", "open", "drown"
"""Kinds: those who wait for it may go on; will never; the group's own tasks may begin; will never.

A fifth, `transitions.STOP`, ends a whole job."""


@dataclass(slots=True)
class Sources:
    """What has ended or opened, by kind, each with the number of those it concerns where that is known."""

    release: dict[int, int] = field(default_factory=dict)
    doom: dict[int, int] = field(default_factory=dict)
    open: set[int] = field(default_factory=set)
    drown: set[int] = field(default_factory=set)
    opened: Counter[int] = field(default_factory=Counter)
    """Per group: children that are complete now."""
    failed: Counter[int] = field(default_factory=Counter)
    """Per group: children that failed now."""

    def __bool__(self) -> bool:
        return bool(self.release or self.doom or self.open or self.drown or self.opened or self.failed)


@dataclass(slots=True)
class Targets:
    """Who is concerned."""

    tasks: Counter[int] = field(default_factory=Counter)
    ungated: list[int] = field(default_factory=list)
    doomed: set[int] = field(default_factory=set)
    groups: Counter[int] = field(default_factory=Counter)
    drowned: set[int] = field(default_factory=set)
    causes: dict[int, int] = field(default_factory=dict)
    """Per node that is doomed or drowned: the task whose failure it was, where that is known from before."""


@dataclass(slots=True)
class Tally:
    """What the jobs' rows will learn, once, at the end."""

    counts: dict[int, Counter[str]] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    job_of: dict[int, int] = field(default_factory=dict)
    cause_of: dict[int, int] = field(default_factory=dict)
    """Per task or group that failed, or never will begin: the task whose failure it was."""
    left: int = 0
    """How many more tasks this transaction may ready or doom."""

    def blame(self, node: int | None, cause: int) -> None:
        """Note whose failure it was; the first counts."""
        if node is not None:
            self.cause_of.setdefault(node, cause)

    def add(self, ended: Iterable[EndedTask]) -> None:
        kinds = Counter((task.job_id, task.status, task.critical) for task in ended)
        for (job_id, status, critical), count in kinds.items():
            counts = self.counts.setdefault(job_id, Counter())
            counts["open_tasks"] -= count
            if status == TaskStatus.COMPLETED:
                counts["completed_tasks"] += count
            elif status in FAILED_TASK:
                counts["failed_tasks"] += count if status == TaskStatus.FAILED else 0
                counts["failed_critical"] += count if critical else 0


# ---------------------------------------------------------------- what is too much for now


async def postpone(session: Session, sources: Sources, tally: Tally) -> list[dict[str, Any]]:
    """Take out of the sources what would exceed this transaction's share."""
    rows: list[dict[str, Any]] = []
    for kind, nodes in ((RELEASE, sources.release), (DOOM, sources.doom)):
        for node, count in sorted(nodes.items(), key=lambda item: item[1]):
            if count > tally.left:
                del nodes[node]
                rows.append(_ripple(kind, node, tally))
            else:
                tally.left -= count
    inside = sources.open | sources.drown
    if inside:
        counted = await session.rows(
            select(tasks.c.group_id, func.count().label("size"))
            .where(session.any_of(tasks.c.group_id, sorted(inside)))
            .group_by(tasks.c.group_id)
        )
        sizes: dict[int, int] = {row.group_id: row.size for row in counted}
        for kind, members in ((OPEN, sources.open), (DROWN, sources.drown)):
            for node in sorted(members, key=lambda group: sizes.get(group, 0)):
                if sizes.get(node, 0) > tally.left:
                    members.remove(node)
                    rows.append(_ripple(kind, node, tally))
                else:
                    tally.left -= sizes.get(node, 0)
    return rows


def _ripple(kind: str, node: int, tally: Tally) -> dict[str, Any]:
    return {
        "id": new_id(),
        "job_id": tally.job_of[node],
        "kind": kind,
        "node_id": node,
        "node_type": "group" if kind in (OPEN, DROWN) else "node",
        "after_id": 0,
        "cause_id": tally.cause_of[node] if kind in (DOOM, DROWN) else None,
    }
