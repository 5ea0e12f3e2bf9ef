"""Placing new tasks: what each needs is put together from its job, its groups and itself, and gets a lane.

This is done in a transaction of its own before the graph is stored: interning waits for whoever interns the same.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from aaiclick.orchestration.models import Done, Group, Task
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.lanes import PLAIN, canonical
from aaiclick.orchestration.rules.naming.executor_names import PYTHON, executor_of
from aaiclick.orchestration.rules.placement import lane_needs, merge, misses
from aaiclick.orchestration.store.claims.lanes import read_given
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.lanes import intern_lanes
from aaiclick.orchestration.store.reading.nodes import list_nodes

log = logging.getLogger("aaiclick")

NODES_MAX = 10_000


class Asked(NamedTuple):
    """A new task or group: what was said of it, and where it is."""

    id: int
    name: str
    group_id: int | None
    needs: str
    entrypoint: str = ""


class Given(NamedTuple):
    """What a new task or group inherits: the needs of its job, and of the stored groups."""

    job: str = ""
    groups: Mapping[int, str] = {}
    is_reserved: bool = False
    """Whether whoever reserved the job runs its tasks, whatever they need: nobody is warned."""


async def place_submission(database: Database, submission: Submission) -> None:
    """Set the lanes of all that is new in a submission."""
    tasks = [Asked(task.id, task.name, task.group_id, task.needs, task.entrypoint) for task in submission.tasks]
    groups = [Asked(group.id, group.name, group.parent_group_id, group.needs) for group in submission.groups]
    job = submission.new_job
    if job is None:
        given = await _inherited(database, submission.job_id, tasks, groups)
    else:
        given = Given(job.needs, is_reserved=bool(job.reserved_for))
        job.lane = (await _intern(database, [lane_needs(job.needs, "")]))[0] if job.needs else PLAIN
    lanes = await _place(database, tasks, groups, given)
    nodes: list[Task | Group] = [*submission.tasks, *submission.groups]
    for node in nodes:
        node.lane = lanes.get(node.id, node.lane)


async def place_children(database: Database, dones: Sequence[Done]) -> list[Done]:
    """Return the reports of runs of one job, with the lanes of the tasks that these runs made."""
    made = [done.children for done in dones if done.children is not None]
    if not made:
        return [*dones]
    tasks = [
        Asked(each.id, each.name, each.group_id, each.needs, each.entrypoint) for new in made for each in new.tasks
    ]
    groups = [Asked(each.id, each.name, each.parent_group_id, each.needs) for new in made for each in new.groups]
    lanes = await _place(database, tasks, groups, await _inherited(database, made[0].job_id, tasks, groups))
    return [_placed(done, lanes) for done in dones]


def _placed(done: Done, lanes: Mapping[int, int]) -> Done:
    if done.children is None:
        return done
    tasks = [each._replace(lane=lanes.get(each.id, PLAIN)) for each in done.children.tasks]
    groups = [each._replace(lane=lanes.get(each.id, PLAIN)) for each in done.children.groups]
    return replace(done, children=replace(done.children, tasks=tasks, groups=groups))


async def _inherited(database: Database, job_id: int, tasks: Iterable[Asked], groups: Collection[Asked]) -> Given:
    """Return the needs of a stored job, and of its groups that get new members."""
    new = {group.id for group in groups}
    around = {each.group_id for each in (*tasks, *groups) if each.group_id is not None} - new
    return Given(*await database.read(lambda session: read_given(session, job_id, sorted(around))))


async def _place(database: Database, tasks: Sequence[Asked], groups: Sequence[Asked], given: Given) -> dict[int, int]:
    """Return the lanes of tasks and groups that are not plain, by id."""
    if not given.job and not given.groups and not any(map(_is_choosy, (*tasks, *groups))):
        return {}
    whole = _all_needs(groups, given)
    wanted: dict[int, tuple[Asked, str]] = {group.id: (group, whole[group.id]) for group in groups}
    for task in tasks:
        wanted[task.id] = task, merge(whole.get(task.group_id or 0, given.job), task.needs)
    asked = {node: (each, needs) for node, (each, needs) in wanted.items() if needs or _is_choosy(each)}
    needs = [lane_needs(text, each.entrypoint) for each, text in asked.values()]
    lanes = dict(zip(asked, await _intern(database, needs), strict=True))
    if not given.is_reserved:
        await _warn(database, {lanes[task.id]: task.name for task in tasks if task.id in lanes})
    return lanes


def _is_choosy(asked: Asked) -> bool:
    """Return whether a task or group needs something by itself: what was said of it, or its executor."""
    return bool(asked.needs) or executor_of(asked.entrypoint) != PYTHON


def _all_needs(groups: Iterable[Asked], given: Given) -> dict[int, str]:
    """Return the needs of each group, with those of what it is in."""
    known = {group.id: group for group in groups}
    found = dict(given.groups)
    for group in known.values():
        path: list[Asked] = []
        step: Asked | None = group
        while step is not None and step.id not in found and step not in path:  # a cycle is refused later
            path.append(step)
            step = known.get(step.group_id or 0)
        for each in reversed(path):
            found[each.id] = merge(found.get(each.group_id or 0, given.job), each.needs)
    return found


async def _intern(database: Database, needs: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the lanes of these needs; only those that this process does not know are asked for."""
    texts = [canonical(each) for each in needs]
    unknown = {text: each for text, each in zip(texts, needs, strict=True) if text not in database.lanes.numbers}
    if unknown:
        found = await database.transact(lambda session: intern_lanes(session, list(unknown.values())))
        for (text, each), lane in zip(unknown.items(), found, strict=True):
            database.lanes.learn(lane, text, each)
    return [database.lanes.numbers[text] for text in texts]


async def _warn(database: Database, names: Mapping[int, str]) -> None:
    """Tell of lanes that no registered node may serve. The tasks are stored all the same: a node may come."""
    doubtful = names.keys() - database.lanes.met
    if not doubtful:
        return
    nodes = await database.read(lambda session: list_nodes(session, limit=NODES_MAX))
    for lane in sorted(doubtful):
        needs = database.lanes.needs[lane]
        lacking = Counter(lack for node in nodes for lack in misses(needs, node))
        if any(not misses(needs, node) for node in nodes):
            database.lanes.met.add(lane)
        else:
            often = f", for example: {lacking.most_common(1)[0][0]}" if lacking else ""
            log.warning("no registered node can run task %r%s; it waits until one can", names[lane], often)
