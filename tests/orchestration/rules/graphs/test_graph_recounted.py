"""Cycles, counters and containment of random graphs, compared with what the words mean, counted the slow way."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from hypothesis import assume, example, given
from hypothesis import strategies as st

from aaiclick.orchestration.rules.graphs.graph import Plan, Shape, Stored, ancestors, descendants, find_cycle, make_plan
from aaiclick.orchestration.rules.triggers import Standing

G, H, K = 101, 102, 103


@st.composite
def shapes(draw: st.DrawFn, *, any_edges: bool) -> Shape:
    """Up to six groups and eight tasks; the edges go up in a random order of tasks, or anywhere."""
    group_ids = list(range(101, 101 + draw(st.integers(0, 6))))
    groups = {group: draw(st.sampled_from([None, *group_ids[:index]])) for index, group in enumerate(group_ids)}
    task_ids = range(1, 1 + draw(st.integers(0, 8)))
    members = {task: draw(st.sampled_from([None, *group_ids])) for task in task_ids}
    nodes = [*members, *groups]
    edges = set()
    if nodes:
        edges = draw(st.sets(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)), max_size=10))
    shape = Shape(members, groups, set())
    for edge in sorted(edges):
        shape.edges.add(edge)
        if not any_edges and find_cycle(shape):
            shape.edges.remove(edge)
    return shape


def points(shape: Shape) -> Iterator[tuple[tuple[int, str], tuple[int, str]]]:
    """What must happen after what: everything begins before it ends, a member within its group."""
    around = {**shape.tasks, **shape.groups}
    for node, group in around.items():
        yield (node, "begin"), (node, "end")
        if group is not None:
            yield (group, "begin"), (node, "begin")
            yield (node, "end"), (group, "end")
    for previous, following in shape.edges:
        yield (previous, "end"), (following, "begin")


def is_impossible(shape: Shape) -> bool:
    """Whether something must happen before itself: by walking from everywhere."""
    after: dict[tuple[int, str], set[tuple[int, str]]] = {}
    for first, then in points(shape):
        after.setdefault(first, set()).add(then)
    for start in after:
        reached: set[tuple[int, str]] = set()
        left = [start]
        while left:
            for then in after.get(left.pop(), ()):
                if then == start:
                    return True
                if then not in reached:
                    reached.add(then)
                    left.append(then)
    return False


def assert_is_a_path(shape: Shape, path: list[int]) -> None:
    """Each step is an edge, or goes into a group or out of one."""
    around = {**shape.tasks, **shape.groups}
    for step, following in pairwise(path):
        linked = (step, following) in shape.edges
        assert linked or around.get(step) == following or around.get(following) == step, (step, following)


@given(shapes(any_edges=True))
@example(Shape({}, {G: None, H: G}, {(H, G)}))
def test_a_cycle_is_found_exactly_where_there_is_one(shape: Shape) -> None:
    found = find_cycle(shape)
    assert (found is not None) == is_impossible(shape)
    if found is not None:
        assert len(found) > 1
        assert found[0] == found[-1]
        assert_is_a_path(shape, found)


class Meaning:
    """What the words mean, from the definitions alone: a group is complete when every task inside is."""

    def __init__(self, shape: Shape, completed: Iterable[int] = (), failed: Iterable[int] = ()) -> None:
        self.shape = shape
        self.around = {**shape.tasks, **shape.groups}
        self.completed = set(completed)
        self.failed = set(failed)

    def inside(self, group: int) -> set[int]:
        return {task for task in self.shape.tasks if group in self.groups_around(task)}

    def groups_around(self, node: int) -> list[int]:
        found = []
        step = self.around[node]
        while step is not None:
            found.append(step)
            step = self.around[step]
        return found

    def is_complete(self, node: int) -> bool:
        return node in self.completed if node in self.shape.tasks else self.inside(node) <= self.completed

    def unmet(self, node: int) -> int:
        own = sum(following == node and not self.is_complete(previous) for previous, following in self.shape.edges)
        group = self.around[node]
        return own + (group is not None and self.unmet(group) > 0)

    def open(self, group: int) -> int:
        return sum(place == group and not self.is_complete(node) for node, place in self.around.items())

    def is_ready(self, task: int) -> bool:
        """Everything that it, or a group around it, waits for is complete."""
        held = {task, *self.groups_around(task)}
        return all(self.is_complete(previous) for previous, following in self.shape.edges if following in held)


@given(shapes(any_edges=False))
def test_the_counters_of_a_new_graph_are_those_of_a_recount(shape: Shape) -> None:
    plan, meaning = make_plan(shape, Stored()), Meaning(shape)
    assert plan.task_unmet == {task: meaning.unmet(task) for task in shape.tasks}
    assert {task for task, unmet in plan.task_unmet.items() if not unmet} == set(filter(meaning.is_ready, shape.tasks))
    assert plan.group_unmet == {group: meaning.unmet(group) for group in shape.groups}
    assert {group: plan.group_open[group] for group in shape.groups} == {g: meaning.open(g) for g in shape.groups}
    assert plan.group_depth == {group: len(meaning.groups_around(group)) for group in shape.groups}
    gated = {task for task, group in shape.tasks.items() if group is not None and meaning.unmet(group)}
    assert plan.gated == gated
    assert plan.met == {edge for edge in shape.edges if meaning.is_complete(edge[0])}
    assert not plan.doomed
    assert not plan.stored_open
    assert not plan.stored_unmet


@given(shapes(any_edges=False), st.data())
def test_what_is_added_to_a_stored_graph_counts_as_if_all_were_new(whole: Shape, data: st.DataObject) -> None:
    """Split a graph in two, with some tasks of the first part completed: the plan for the second fills the gap."""
    stored_groups = closed_upwards(whole, data.draw(st.sets(st.sampled_from(sorted(whole.groups) or [0]))))
    may_be_stored = [task for task, group in whole.tasks.items() if group is None or group in stored_groups]
    stored_tasks = data.draw(st.sets(st.sampled_from(may_be_stored))) if may_be_stored else set()
    old = {*stored_groups, *stored_tasks}
    old_edges = {edge for edge in whole.edges if old.issuperset(edge)}
    before = Shape(
        {task: whole.tasks[task] for task in stored_tasks},
        {group: whole.groups[group] for group in stored_groups},
        set(data.draw(st.sets(st.sampled_from(sorted(old_edges))))) if old_edges else set(),
    )
    completed = data.draw(st.sets(st.sampled_from(sorted(stored_tasks)))) if stored_tasks else set()
    new = Shape(
        {task: group for task, group in whole.tasks.items() if task not in old},
        {group: parent for group, parent in whole.groups.items() if group not in old},
        whole.edges - before.edges,
    )
    was, meaning = Meaning(before, completed), Meaning(whole, completed)
    waited_for = {previous for previous, _ in before.edges}
    reopened = {group for group in before.groups if was.is_complete(group) and not meaning.is_complete(group)}
    assume(not reopened & waited_for)  # refused before it comes to a plan

    plan = make_plan(new, stored_view(was))

    assert plan.task_unmet == {task: meaning.unmet(task) for task in new.tasks}
    assert plan.group_unmet == {group: meaning.unmet(group) for group in new.groups}
    assert {group: plan.group_open[group] for group in new.groups} == {g: meaning.open(g) for g in new.groups}
    assert plan.group_depth == {group: len(meaning.groups_around(group)) for group in new.groups}
    assert plan.met == {edge for edge in new.edges if meaning.is_complete(edge[0])}
    assert_fills_the_gap(plan, was, meaning, new)


def closed_upwards(shape: Shape, groups: set[int]) -> set[int]:
    return ancestors(shape.groups, groups & shape.groups.keys())


def stored_view(was: Meaning) -> Stored:
    groups, nodes = was.shape.groups, was.around
    return Stored(
        standing={node: Standing.MET if was.is_complete(node) else Standing.OPEN for node in nodes},
        closed_groups={group for group in groups if was.unmet(group)},
        depth={group: len(was.groups_around(group)) for group in groups},
        parents=dict(groups),
    )


def assert_fills_the_gap(plan: Plan, was: Meaning, meaning: Meaning, new: Shape) -> None:
    """Direct changes of stored counters; what follows from them for nested groups is the store's."""
    for node in was.around:
        more = sum(edge[1] == node and not meaning.is_complete(edge[0]) for edge in new.edges)
        assert plan.stored_unmet[node] == more
    for group in was.shape.groups:
        joined = [node for node, place in {**new.tasks, **new.groups}.items() if place == group]
        assert plan.stored_open[group] == sum(not meaning.is_complete(node) for node in joined)


# ---------------------------------------------------------------- containment


@given(shapes(any_edges=False))
def test_ancestors_and_descendants_mirror_each_other(shape: Shape) -> None:
    for group in shape.groups:
        assert group in ancestors(shape.groups, [group])
        for outer in ancestors(shape.groups, [group]):
            assert group in descendants(shape.groups, [outer])
        for inner in descendants(shape.groups, [group]):
            assert group in ancestors(shape.groups, [inner])
