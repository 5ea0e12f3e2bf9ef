"""Affinity: tasks change to lanes that name the node of their last attempt, or of their inputs.

Only tasks whose lane says `retry_node` or `near` are asked about; for all others nothing is read. The caller has locked
the tasks, and they are not in the queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Select, select, update

from aaiclick.orchestration.rules.affinity import after_attempt, near_inputs
from aaiclick.orchestration.rules.lanes import PLAIN
from aaiclick.orchestration.rules.states import TaskStatus
from aaiclick.orchestration.store.definitions.fleet_tables import nodes
from aaiclick.orchestration.store.lanes import lanes_of, needs_of_lanes
from aaiclick.orchestration.store.moves.queue import make_ready
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import dependencies, tasks, workers

INPUTS_MAX = 1_000
"""Inputs that are counted at most, of all tasks that become ready together."""


async def lanes_after(session: Session, rows: Sequence[Any], *, failed: bool | None) -> dict[int, int]:
    """Return the lanes of these tasks after attempts by the workers in their rows, by task: those that change."""
    asked = await _which_say(session, {row.id: row.lane for row in rows}, "retry_node")
    if not asked:
        return {}
    names = await _names(session, {row.worker_id for row in rows if row.id in asked})
    wanted = {
        row.id: after_attempt(asked[row.id], names.get(row.worker_id), failed=failed) for row in rows if row.id in asked
    }
    return await _changed(session, {row.id: row.lane for row in rows}, wanted)


async def bring_near(session: Session, lane_of: Mapping[int, int]) -> dict[int, int]:
    """Let these tasks, which are about to be ready, change to lanes that name the node of most of their inputs.

    Return the lanes of those that changed.
    """
    asked = await _which_say(session, lane_of, "near")
    if not asked:
        return {}
    made_on = await _nodes_of_inputs(session, sorted(asked))
    changed = await _changed(
        session, lane_of, {task: near_inputs(needs, made_on.get(task)) for task, needs in asked.items()}
    )
    await change_lanes(session, changed)
    return changed


async def ready_near_inputs(session: Session, rows: Sequence[Any]) -> None:
    """Insert these tasks into the queue, of the lanes that name the node of their inputs if they say so."""
    await bring_near(session, {row.id: row.lane for row in rows})
    await make_ready(session, [row.id for row in rows])


async def change_lanes(session: Session, lane_of: Mapping[int, int]) -> None:
    """Write the lanes of these tasks."""
    for lane in sorted({*lane_of.values()}):
        which = session.any_of(tasks.c.id, sorted(task for task, new in lane_of.items() if new == lane))
        await session.run(update(tasks).where(which).values(lane=lane))


async def _which_say(session: Session, lane_of: Mapping[int, int], what: str) -> dict[int, Mapping[str, Any]]:
    """Return the needs of those of these tasks that say so, by task."""
    lanes = {*lane_of.values()} - {PLAIN}
    if not lanes:
        return {}
    known = {lane: needs for lane, needs in (await needs_of_lanes(session, lanes)).items() if what in needs}
    return {task: known[lane] for task, lane in lane_of.items() if lane in known}


async def _changed(
    session: Session, lane_of: Mapping[int, int], wanted: Mapping[int, Mapping[str, Any]]
) -> dict[int, int]:
    """Return the lanes of what is wanted, by task: of tasks that are not in it yet."""
    lanes = dict(zip(wanted, await lanes_of(session, list(wanted.values())), strict=True))
    return {task: lane for task, lane in lanes.items() if lane != lane_of[task]}


async def _names(session: Session, worker_ids: Iterable[int | None]) -> dict[int, str]:
    """Return the names of the nodes of these workers, as far as they are known."""
    which = session.any_of(workers.c.id, sorted(each for each in worker_ids if each is not None))
    found = select(workers.c.id, nodes.c.name).join(nodes, nodes.c.id == workers.c.node_id).where(which)
    return {row.id: row.name for row in await session.rows(found)}


async def _nodes_of_inputs(session: Session, ids: Sequence[int]) -> dict[int, str]:
    """Return the node that ran most of the tasks that each of these depends on; of several, the first by name."""
    counts: dict[int, Counter[int]] = {}
    for inputs in (_tasks_before(session, ids), _members_before(session, ids)):
        for row in await session.rows(inputs.limit(INPUTS_MAX)):
            counts.setdefault(row.next_id, Counter())[row.worker_id] += 1
    names = await _names(session, {worker for each in counts.values() for worker in each})
    found: dict[int, str] = {}
    for task, by_worker in counts.items():
        by_node: Counter[str] = Counter()
        for worker, count in by_worker.items():
            if worker in names:
                by_node[names[worker]] += count
        if by_node:
            found[task] = min(by_node, key=lambda name: (-by_node[name], name))
    return found


def _tasks_before(session: Session, ids: Sequence[int]) -> Select[Any]:
    """Select the workers of complete tasks before these."""
    return _before(session, ids, "task").join(tasks, tasks.c.id == dependencies.c.previous_id)


def _members_before(session: Session, ids: Sequence[int]) -> Select[Any]:
    """Select the workers of complete tasks directly in groups before these."""
    return _before(session, ids, "group").join(tasks, tasks.c.group_id == dependencies.c.previous_id)


def _before(session: Session, ids: Sequence[int], kind: str) -> Select[Any]:
    ended = (tasks.c.status == TaskStatus.COMPLETED, tasks.c.worker_id.is_not(None))
    which = (session.any_of(dependencies.c.next_id, ids), dependencies.c.previous_type == kind)
    return select(dependencies.c.next_id, tasks.c.worker_id).select_from(dependencies).where(*which, *ended)
