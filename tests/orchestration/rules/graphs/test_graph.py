"""Cycles, counters and containment: is a graph possible, and what does each of its nodes wait for."""

import sys
from itertools import pairwise

import pytest

from aaiclick.orchestration.rules.graphs.graph import (
    Shape,
    Stored,
    ancestors,
    containment_cycle,
    descendants,
    find_cycle,
    make_plan,
)
from aaiclick.orchestration.rules.triggers import Standing

A, B, C, D = 1, 2, 3, 4
G, H, K = 101, 102, 103
DEEP = 100_000


def tasks(*ids: int, inside: int | None = None) -> dict[int, int | None]:
    return dict.fromkeys(ids, inside)


# ---------------------------------------------------------------- cycles


def assert_is_a_path(shape: Shape, path: list[int]) -> None:
    """Each step is an edge, or goes into a group or out of one."""
    around = {**shape.tasks, **shape.groups}
    for step, following in pairwise(path):
        linked = (step, following) in shape.edges
        assert linked or around.get(step) == following or around.get(following) == step, (step, following)


@pytest.mark.parametrize(
    ("shape", "round_trip"),
    [
        (Shape(tasks(A), {}, {(A, A)}), [A, A]),
        (Shape(tasks(A, B), {}, {(A, B), (B, A)}), [A, B, A]),
        (Shape(tasks(A, B, C), {}, {(A, B), (B, C), (C, A)}), [A, B, C, A]),
        (Shape({}, {G: None, H: None}, {(G, H), (H, G)}), [G, H, G]),
        (Shape(tasks(A, inside=G) | tasks(B, inside=H), {G: None, H: None}, {(G, H), (B, A)}), [A, G, H, B, A]),
        (Shape(tasks(A, inside=G), {G: None}, {(G, A)}), [A, G, A]),
        (Shape(tasks(A, inside=G), {G: None}, {(A, G)}), [A, G, A]),
        (Shape(tasks(A, inside=H), {G: None, H: G}, {(G, A)}), [A, H, G, A]),
        (Shape(tasks(A, inside=K), {G: None, H: G, K: H}, {(A, G)}), [A, G, H, K, A]),
        (Shape({}, {G: None, H: G}, {(G, H)}), [G, H, G]),
        (Shape({}, {G: None, H: G}, {(H, G)}), [G, H, G]),
        (Shape(tasks(A), {G: None}, {(A, G), (G, A)}), [A, G, A]),
        (Shape({}, {G: None}, {(G, G)}), [G, G]),
    ],
    ids=[
        "task to itself",
        "task and task",
        "three tasks",
        "group and group, both empty",
        "group and group, through their members",
        "group to its own member",
        "member to its own group",
        "group to a member of a member",
        "member to a group far around it",
        "group to a group inside it",
        "group to the group around it",
        "task and empty group",
        "group to itself",
    ],
)
def test_whatever_waits_for_itself_is_found_with_its_path(shape: Shape, round_trip: list[int]) -> None:
    found = find_cycle(shape)
    assert found is not None
    assert found[0] == found[-1]
    assert set(found) == set(round_trip)
    assert_is_a_path(shape, found)


@pytest.mark.parametrize(
    "shape",
    [
        Shape(),
        Shape(tasks(A, B), {}, {(A, B)}),
        Shape(tasks(A, B, C, D), {}, {(A, B), (A, C), (B, D), (C, D)}),
        Shape(tasks(A, B, inside=G), {G: None}, {(A, B)}),
        Shape(tasks(A, inside=G) | tasks(B), {G: None}, {(A, B), (G, B)}),
        Shape(tasks(A, inside=G) | tasks(B, inside=H), {G: None, H: None}, {(G, H), (A, B), (A, H), (G, B)}),
        Shape(tasks(A, inside=H) | tasks(B, inside=K), {G: None, H: G, K: G}, {(H, K), (A, B)}),
    ],
)
def test_what_can_be_put_in_an_order_is_no_cycle(shape: Shape) -> None:
    assert find_cycle(shape) is None
    assert containment_cycle(shape.groups) is None


def test_what_only_hangs_off_a_cycle_is_not_part_of_its_path() -> None:
    shape = Shape(tasks(A, B, C, D), {}, {(A, B), (B, A), (B, C), (C, D)})
    found = find_cycle(shape)
    assert found is not None
    assert set(found) == {A, B}


@pytest.mark.parametrize(
    ("groups", "members"),
    [({G: G}, {G}), ({G: H, H: G}, {G, H}), ({G: H, H: K, K: G, 104: K}, {G, H, K})],
)
def test_groups_that_contain_each_other_are_found(groups: dict[int, int | None], members: set[int]) -> None:
    found = containment_cycle(groups)
    assert found is not None
    assert found[0] == found[-1]
    assert set(found) == members
    assert all(groups[inner] == outer for inner, outer in pairwise(found))


def test_a_group_whose_parent_is_elsewhere_is_no_cycle() -> None:
    assert containment_cycle({G: 999, H: G}) is None


@pytest.mark.parametrize("length", [10_000, DEEP])
def test_a_long_chain_is_walked_without_recursion(length: int) -> None:
    assert sys.getrecursionlimit() < 10_000
    chain = list(range(1, length + 1))
    shape = Shape(tasks(*chain), {}, set(pairwise(chain)))
    assert find_cycle(shape) is None
    plan = make_plan(shape, Stored())
    assert plan.task_unmet[1] == 0
    assert all(plan.task_unmet[task] == 1 for task in chain[1:])
    shape.edges.add((length, 1))
    found = find_cycle(shape)
    assert found is not None
    assert len(found) == length + 1


@pytest.mark.parametrize("length", [10_000, DEEP])
def test_groups_nested_very_deep_are_walked_without_recursion(length: int) -> None:
    groups: dict[int, int | None] = {1: None, **{group: group - 1 for group in range(2, length + 1)}}
    inner, outer = length, 1
    shape = Shape({DEEP * 2: inner, DEEP * 2 + 1: None}, dict(groups), {(outer, DEEP * 2 + 1)})
    assert containment_cycle(groups) is None
    assert find_cycle(shape) is None
    plan = make_plan(shape, Stored())
    assert plan.group_depth[inner] == length - 1
    assert set(plan.group_open.values()) == {1}
    assert plan.task_unmet[DEEP * 2 + 1] == 1
    assert ancestors(groups, [inner]) == descendants(groups, [outer]) == set(groups)
    groups[outer] = inner
    found = containment_cycle(groups)
    assert found is not None
    assert len(found) == length + 1


def test_a_wide_fan_in_and_fan_out_are_counted() -> None:
    middle = range(2, 10_002)
    edges = {(1, task) for task in middle} | {(task, 10_002) for task in middle}
    shape = Shape(tasks(1, 10_002, *middle), {}, edges)
    assert find_cycle(shape) is None
    plan = make_plan(shape, Stored())
    assert plan.task_unmet[10_002] == 10_000
    assert plan.dependents[1] == 10_000


# ---------------------------------------------------------------- counters


def test_a_task_behind_a_group_that_waits_is_gated_once_whatever_the_depth() -> None:
    shape = Shape(tasks(A) | tasks(B, inside=K), {G: None, H: G, K: H}, {(A, G)})
    plan = make_plan(shape, Stored())
    assert plan.group_unmet == {G: 1, H: 1, K: 1}
    assert plan.task_unmet == {A: 0, B: 1}
    assert plan.gated == {B}


def test_an_empty_group_is_complete_and_is_told_of_when_waited_for() -> None:
    plan = make_plan(Shape(tasks(A), {G: None, H: G}, {(G, A)}), Stored())
    assert plan.task_unmet == {A: 0}
    assert plan.met == {(G, A)}
    assert plan.empty_waited_for == {G}


def test_what_waits_for_something_completed_does_not_wait() -> None:
    plan = make_plan(Shape(tasks(A), {}, {(B, A), (C, A)}), Stored({B: Standing.MET, C: Standing.OPEN}))
    assert plan.task_unmet == {A: 1}
    assert plan.met == {(B, A)}
    assert plan.dependents == {B: 1, C: 1}


def test_what_waits_for_something_failed_is_doomed() -> None:
    plan = make_plan(Shape(tasks(A), {G: None}, {(B, A), (B, G)}), Stored({B: Standing.FAILED}))
    assert plan.doomed.keys() == {A, G}
    assert plan.task_unmet[A] == plan.group_unmet[G] == 1


def test_new_members_of_a_stored_group_that_waits_are_gated() -> None:
    stored = Stored(closed_groups={G}, depth={G: 3}, parents={G: None})
    plan = make_plan(Shape(tasks(A, inside=G) | tasks(B, inside=H), {H: G}, set()), stored)
    assert plan.gated == {A, B}
    assert plan.group_unmet == {H: 1}
    assert plan.group_depth == {H: 4}
    assert plan.stored_open == {G: 2}


def test_new_members_of_a_stored_group_that_is_made_to_wait_with_them_are_gated() -> None:
    """G is stored and free; in one go it gets a new member and a new task to wait for."""
    stored = Stored({G: Standing.OPEN}, depth={G: 0}, parents={G: None})
    plan = make_plan(Shape(tasks(A) | tasks(B, inside=G), {}, {(A, G)}), stored)
    assert plan.stored_unmet == {G: 1}
    assert plan.gated == {B}
    assert plan.task_unmet == {A: 0, B: 1}


def test_the_same_where_the_group_around_the_stored_group_is_made_to_wait() -> None:
    stored = Stored({G: Standing.OPEN, H: Standing.OPEN}, depth={G: 0, H: 1}, parents={G: None, H: G})
    plan = make_plan(Shape(tasks(A) | tasks(B, inside=K) | tasks(C, inside=H), {K: H}, {(A, G)}), stored)
    assert plan.gated == {B, C}
    assert plan.group_unmet == {K: 1}


def test_a_complete_group_that_gets_more_is_waited_for_again() -> None:
    stored = Stored({G: Standing.MET}, depth={G: 0}, parents={G: None})
    plan = make_plan(Shape(tasks(A, inside=G) | tasks(B), {}, {(G, B)}), stored)
    assert plan.task_unmet == {A: 0, B: 1}
    assert not plan.met


def test_the_same_for_the_groups_around_it() -> None:
    stored = Stored({G: Standing.MET, H: Standing.MET}, depth={G: 0, H: 1}, parents={G: None, H: G})
    plan = make_plan(Shape(tasks(A, inside=K) | tasks(B), {K: H}, {(G, B)}), stored)
    assert plan.task_unmet == {A: 0, B: 1}
    assert not plan.met


def test_what_joins_a_group_that_will_never_begin_is_doomed() -> None:
    stored = Stored(closed_groups={G}, depth={G: 0}, parents={G: None}, drowned={G: C})
    plan = make_plan(Shape(tasks(A, inside=G) | tasks(B, inside=H), {H: G}, set()), stored)
    assert plan.doomed == {A: C, H: C}
    assert plan.gated == {A, B}


# ---------------------------------------------------------------- containment


def test_ancestors_and_descendants_take_several_and_unknown_groups() -> None:
    groups = {G: None, H: G, K: None}
    assert ancestors(groups, [H, K]) == {G, H, K}
    assert descendants(groups, [G, K]) == {G, H, K}
    assert ancestors(groups, []) == descendants(groups, []) == set()
    assert ancestors(groups, [999]) == descendants(groups, [999]) == {999}
