"""Graphs of tasks and groups: search for cycles, and the counters with which new nodes are stored.

In the search a task is one point and a group two: its start (its id) and its end (minus its id). Nodes that wait for a
group wait for its end; nodes that a group waits for hold back its start. All functions are iterative, not recursive,
because a chain may be ten thousand nodes long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from aaiclick.orchestration.rules.triggers import (
    AMISS,
    ENDED,
    ONE,
    Fate,
    News,
    Standing,
    When,
    is_broken,
    is_satisfied,
    judge,
)


@dataclass(slots=True)
class Shape:
    """A graph: tasks and groups, each with the group that contains it, and edges (previous, following)."""

    tasks: dict[int, int | None] = field(default_factory=dict)
    groups: dict[int, int | None] = field(default_factory=dict)
    edges: set[tuple[int, int]] = field(default_factory=set)
    rules: dict[int, When] = field(default_factory=dict)
    """The trigger rules of nodes whose rule is not ALL_COMPLETED."""


@dataclass(slots=True)
class Stored:
    """The stored state of the nodes that a new graph refers to."""

    standing: dict[int, Standing] = field(default_factory=dict)
    closed_groups: set[int] = field(default_factory=set)
    depth: dict[int, int] = field(default_factory=dict)
    parents: dict[int, int | None] = field(default_factory=dict)
    drowned: dict[int, int] = field(default_factory=dict)
    """Groups that will never begin, each with the node that failed before it or before a group around it."""
    spared: set[int] = field(default_factory=set)
    """Groups that are skipped, or inside a skipped group."""
    rules: dict[int, When] = field(default_factory=dict)


@dataclass(slots=True)
class Plan:
    """The counters with which new nodes are stored, and the changes to counters of stored nodes."""

    task_unmet: dict[int, int] = field(default_factory=dict)
    group_unmet: dict[int, int] = field(default_factory=dict)
    group_open: Counter[int] = field(default_factory=Counter)
    group_depth: dict[int, int] = field(default_factory=dict)
    gated: set[int] = field(default_factory=set)
    met: set[tuple[int, int]] = field(default_factory=set)
    dependents: Counter[int] = field(default_factory=Counter)
    doomed: dict[int, int] = field(default_factory=dict)
    """Nodes that will never begin, each with the node that failed before it."""
    unneeded: set[int] = field(default_factory=set)
    """Nodes that are skipped from the start."""
    awaited: dict[int, int] = field(default_factory=dict)
    amiss: set[int] = field(default_factory=set)
    """`awaited` and `amiss` of new nodes whose rule needs one input: see `rules.triggers`."""
    stored_inputs: Counter[int] = field(default_factory=Counter)
    """The number of added inputs of stored nodes whose rule needs one; `stored_news` says how these stand."""
    stored_news: dict[int, News] = field(default_factory=dict)
    broken: dict[int, int] = field(default_factory=dict)
    """Per node whose rule needs one input: an input that failed or was cancelled."""
    stored_unmet: Counter[int] = field(default_factory=Counter)
    stored_open: Counter[int] = field(default_factory=Counter)
    empty_waited_for: set[int] = field(default_factory=set)


def find_cycle(shape: Shape) -> list[int] | None:
    """Return the ids along one cycle, with the first repeated at the end, or None."""
    follow = _successors(shape)
    waiting: Counter[int] = Counter()
    for targets in follow.values():
        waiting.update(targets)
    free = [point for point in follow if point not in waiting]
    while free:
        for target in follow.get(free.pop(), ()):
            waiting[target] -= 1
            if not waiting[target]:
                del waiting[target]
                free.append(target)
    return _walk_back(follow, waiting) if waiting else None


def _successors(shape: Shape) -> dict[int, list[int]]:
    follow: dict[int, list[int]] = {}
    for task, group in shape.tasks.items():
        if group is not None:
            follow.setdefault(group, []).append(task)
            follow.setdefault(task, []).append(-group)
    for group, parent in shape.groups.items():
        follow.setdefault(group, []).append(-group)
        if parent is not None:
            follow.setdefault(parent, []).append(group)
            follow.setdefault(-group, []).append(-parent)
    for previous, following in shape.edges:
        end = -previous if previous in shape.groups else previous
        follow.setdefault(end, []).append(following)
    return follow


def _walk_back(follow: Mapping[int, list[int]], stuck: Mapping[int, int]) -> list[int]:
    """Return the ids of a cycle among the points that are left.

    Each of them has a predecessor among them, so walking back must come to a point twice.
    """
    before: dict[int, int] = {}
    for point, targets in follow.items():
        if point in stuck:
            for target in targets:
                if target in stuck:
                    before[target] = point
    point, seen = next(iter(before)), set()
    while point not in seen:
        seen.add(point)
        point = before[point]
    path, step = [point], before[point]
    while step != point:
        path.append(step)
        step = before[step]
    path.append(point)
    ids = [abs(step) for step in reversed(path)]
    unique = [step for index, step in enumerate(ids) if index == 0 or step != ids[index - 1]]
    return unique if len(unique) > 1 else unique * 2


def containment_cycle(groups: Mapping[int, int | None]) -> list[int] | None:
    """Return a cycle of groups that contain each other, with the first repeated at the end, or None."""
    fine: set[int] = set()
    for group in groups:
        path: dict[int, None] = {}
        step: int | None = group
        while step is not None and step in groups and step not in fine:
            if step in path:
                steps = list(path)
                return [*steps[steps.index(step) :], step]
            path[step] = None
            step = groups[step]
        fine.update(path)
    return None


def make_plan(new: Shape, stored: Stored) -> Plan:
    """Count what each new node waits for, given the stored state of the nodes that the graph refers to."""
    plan = Plan()
    _depths(new, stored, plan)
    by_depth = sorted(new.groups, key=plan.group_depth.__getitem__)
    _count_open(new, plan, by_depth)
    unmet = _count_edges(new, stored, plan)
    closed = stored.closed_groups | descendants(stored.parents, plan.stored_unmet)
    for group in by_depth:
        parent = new.groups[group]
        plan.group_unmet[group] = unmet[group] + (parent in closed)
        if plan.group_unmet[group]:
            closed.add(group)
    for task, group_id in new.tasks.items():
        gated = group_id in closed
        plan.task_unmet[task] = unmet[task] + gated
        if gated:
            plan.gated.add(task)
    if stored.drowned:
        for node, around in (*new.tasks.items(), *new.groups.items()):
            if around is not None and around in stored.drowned:
                plan.doomed[node] = stored.drowned[around]
    if stored.spared:
        plan.unneeded |= {node for node, at in (*new.tasks.items(), *new.groups.items()) if at in stored.spared}
    for node in plan.unneeded - plan.doomed.keys():
        for around in _groups_around(node, new, stored):
            if around in plan.doomed:
                plan.doomed[node] = plan.doomed[around]
                break
    plan.unneeded -= plan.doomed.keys()
    return plan


def _groups_around(node: int, new: Shape, stored: Stored) -> Iterator[int]:
    """Yield the groups around a new node, new and stored, the innermost first."""
    step = new.tasks.get(node, new.groups.get(node))
    while step is not None:
        yield step
        step = new.groups[step] if step in new.groups else stored.parents.get(step)


def _depths(new: Shape, stored: Stored, plan: Plan) -> None:
    for group in new.groups:
        chain: list[int] = []
        step: int | None = group
        while step is not None and step in new.groups and step not in plan.group_depth:
            chain.append(step)
            step = new.groups[step]
        base = -1 if step is None else plan.group_depth.get(step, stored.depth.get(step, 0))
        for offset, member in enumerate(reversed(chain), start=1):
            plan.group_depth[member] = base + offset


def _count_open(new: Shape, plan: Plan, by_depth: list[int]) -> None:
    for group in new.tasks.values():
        if group is not None:
            (plan.group_open if group in new.groups else plan.stored_open)[group] += 1
    for group in reversed(by_depth):
        parent = new.groups[group]
        if parent is not None and plan.group_open[group]:
            (plan.group_open if parent in new.groups else plan.stored_open)[parent] += 1


def _count_edges(new: Shape, stored: Stored, plan: Plan) -> Counter[int]:
    unmet: Counter[int] = Counter()
    reopened = ancestors(stored.parents, plan.stored_open)
    inputs: dict[int, list[Standing]] = {node: [] for node, rule in new.rules.items() if rule in ONE}
    for edge in new.edges:
        previous, following = edge
        plan.dependents[previous] += 1
        standing = _standing(previous, new, stored, plan)
        if previous in reopened:
            standing = _REOPENED.get(standing, standing)
        rule = new.rules.get(following) or stored.rules.get(following, When.ALL_COMPLETED)
        if rule in ONE:
            _note_input(plan, inputs, edge, standing)
            continue
        if is_satisfied(rule, standing):
            plan.met.add(edge)
            continue
        if is_broken(rule, standing):
            plan.doomed.setdefault(following, previous)
        if following in new.tasks or following in new.groups:
            unmet[following] += 1
        else:
            plan.stored_unmet[following] += 1
    for node, standings in inputs.items():
        unmet[node] = _judge_new(plan, node, new.rules[node], standings)
    return unmet


_REOPENED = {Standing.MET: Standing.OPEN, Standing.FAILED: Standing.FAILING}
"""The standing of a complete or failed group that gets further members."""


def _note_input(plan: Plan, inputs: dict[int, list[Standing]], edge: tuple[int, int], standing: Standing) -> None:
    """Note an input of a node whose rule needs one: for the judgement of a new node, as news of a stored one."""
    previous, following = edge
    if standing in ENDED:
        plan.met.add(edge)
    if standing in AMISS:
        plan.broken.setdefault(following, previous)
    if following in inputs:
        inputs[following].append(standing)
    else:
        plan.stored_inputs[following] += 1
        plan.stored_news.setdefault(following, News()).add(standing)


def _judge_new(plan: Plan, node: int, rule: When, standings: Iterable[Standing]) -> int:
    """Judge a new node whose rule needs one input, note its counters, and return its `unmet`."""
    news, inputs = News(), list(standings)
    for standing in inputs:
        news.add(standing)
    verdict = judge(rule, len(inputs), news)
    plan.awaited[node] = verdict.awaited
    if verdict.amiss:
        plan.amiss.add(node)
    if verdict.fate is Fate.DOOMED:
        plan.doomed.setdefault(node, plan.broken[node])
    elif verdict.fate is Fate.SKIPPED:
        plan.unneeded.add(node)
    return verdict.unmet


def _standing(node: int, new: Shape, stored: Stored, plan: Plan) -> Standing:
    if node in new.tasks:
        return Standing.OPEN
    if node in new.groups:
        if plan.group_open[node]:
            return Standing.OPEN
        plan.empty_waited_for.add(node)
        return Standing.MET
    return stored.standing[node]


def ancestors(groups: Mapping[int, int | None], of: Iterable[int]) -> set[int]:
    """Return these groups and all groups that contain them."""
    found: set[int] = set()
    for group in of:
        step: int | None = group
        while step is not None and step not in found:
            found.add(step)
            step = groups.get(step)
    return found


def descendants(groups: Mapping[int, int | None], of: Iterable[int]) -> set[int]:
    """Return these groups and all groups that they contain."""
    return reach(children_of(groups), of)


def children_of(groups: Mapping[int, int | None]) -> dict[int, list[int]]:
    """Return the groups directly inside each group that contains any."""
    inside: dict[int, list[int]] = {}
    for group, parent in groups.items():
        if parent is not None:
            inside.setdefault(parent, []).append(group)
    return inside


def reach(children: Mapping[int, list[int]], of: Iterable[int]) -> set[int]:
    """Return these nodes and all that can be reached from them."""
    found: set[int] = set()
    left = list(of)
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left.extend(children.get(node, ()))
    return found
