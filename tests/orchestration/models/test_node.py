"""Ids, dependencies and membership: what tasks and groups share."""

import gc
import weakref
from itertools import pairwise, product
from typing import Any

import pytest

from aaiclick.errors import CircularDependencyError, Conflict, InputError
from aaiclick.ids import ID_MAX
from aaiclick.orchestration.models import Group, Task
from aaiclick.orchestration.models import node as node_module
from aaiclick.orchestration.models.node import Edge, Node, collector

KINDS = ["task", "group"]


def make(kind: str, name: str = "x") -> Node:
    return Task(f"some.module.{name}", name=name) if kind == "task" else Group(name)


def pairs(*nodes: Node) -> set[tuple[str, str]]:
    """Who waits for whom, by name, seen from both ends."""
    seen_from_previous = {(edge.previous.name, edge.next.name) for node in nodes for edge in node.outgoing}
    seen_from_next = {(edge.previous.name, edge.next.name) for node in nodes for edge in node.incoming}
    assert seen_from_previous == seen_from_next
    return seen_from_next


# ---------------------------------------------------------------- ids


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_has_an_id_from_its_construction(kind: str) -> None:
    first, second = make(kind), make(kind)
    assert 0 < first.id < second.id <= ID_MAX
    assert first.job_id is None
    assert not first.applied


def test_a_node_is_shown_by_kind_name_and_id() -> None:
    task = make("task", "load")
    assert str(task) == "task 'load'"
    assert repr(task) == f"<task 'load' {task.id}>"
    assert repr(make("group", "all")).startswith("<group 'all' ")


# ---------------------------------------------------------------- operators


@pytest.mark.parametrize(("first", "second"), [*product(KINDS, KINDS)])
def test_the_operators_join_tasks_and_groups_in_every_combination(first: str, second: str) -> None:
    a, b = make(first, "a"), make(second, "b")
    assert (a >> b) is b
    assert pairs(a, b) == {("a", "b")}
    c, d = make(first, "c"), make(second, "d")
    assert (c << d) is c
    assert pairs(c, d) == {("d", "c")}
    e, f = make(first, "e"), make(second, "f")
    assert e.depends_on(f) is e
    assert pairs(e, f) == {("f", "e")}


@pytest.mark.parametrize(("one", "first", "second"), [*product(KINDS, KINDS, KINDS)])
def test_a_list_stands_on_either_side_of_one_node(one: str, first: str, second: str) -> None:
    a, b, c = make(one, "a"), make(first, "b"), make(second, "c")
    several = [b, c]
    assert (a >> several) is several
    assert pairs(a, b, c) == {("a", "b"), ("a", "c")}

    a, b, c = make(one, "a"), make(first, "b"), make(second, "c")
    assert ([b, c] >> a) is a
    assert pairs(a, b, c) == {("b", "a"), ("c", "a")}

    a, b, c = make(one, "a"), make(first, "b"), make(second, "c")
    assert (a << [b, c]) is a
    assert pairs(a, b, c) == {("b", "a"), ("c", "a")}

    a, b, c = make(one, "a"), make(first, "b"), make(second, "c")
    several = [b, c]
    assert (several << a) is several
    assert pairs(a, b, c) == {("a", "b"), ("a", "c")}


def test_chains_go_on_from_what_the_operator_gives() -> None:
    a, b, c, d, e = (make("task", name) for name in "abcde")
    a >> b >> [c, d] >> e
    assert pairs(a, b, c, d, e) == {("a", "b"), ("b", "c"), ("b", "d"), ("c", "e"), ("d", "e")}
    a, b, c = (make("task", name) for name in "abc")
    a << b << c
    assert pairs(a, b, c) == {("b", "a"), ("c", "a")}


def test_the_mixed_chain_of_the_specification() -> None:
    source, extract = make("task", "source"), make("group", "extract")
    one, two = make("task", "one"), make("task", "two")
    load, final = make("group", "load"), make("task", "final")
    source >> extract >> [one, two]
    [one, two] >> load >> final
    assert pairs(source, extract, one, two, load, final) == {
        ("source", "extract"),
        ("extract", "one"),
        ("extract", "two"),
        ("one", "load"),
        ("two", "load"),
        ("load", "final"),
    }


def test_a_tuple_does_as_well_as_a_list() -> None:
    a, b, c = (make("task", name) for name in "abc")
    (a, b) >> c
    assert pairs(a, b, c) == {("a", "c"), ("b", "c")}


def test_an_empty_list_joins_nothing() -> None:
    a = make("task", "a")
    assert (a >> []) == []
    assert ([] >> a) is a
    assert pairs(a) == set()


def test_two_lists_are_a_type_error_and_nothing_is_joined() -> None:
    a, b, c, d = (make("task", name) for name in "abcd")
    with pytest.raises(TypeError, match="list"):
        _ = [a, b] >> [c, d]  # type: ignore[operator]
    with pytest.raises(TypeError, match="list"):
        _ = [a, b] << [c, d]  # type: ignore[operator]
    assert pairs(a, b, c, d) == set()


@pytest.mark.parametrize("wrong", [1, "b", None, 2.5, {"b"}, {"b": 1}, object, lambda: None], ids=repr)
def test_whatever_is_neither_task_nor_group_is_a_type_error(wrong: Any) -> None:
    a, b = make("task", "a"), make("group", "b")
    for join in (
        lambda: a >> wrong,
        lambda: a << wrong,
        lambda: wrong >> a,
        lambda: wrong << a,
        lambda: a >> [b, wrong],
        lambda: [b, wrong] >> a,
        lambda: a >> [b, [b]],  # type: ignore[type-var]
        lambda: a.depends_on(wrong),
    ):
        with pytest.raises(TypeError, match="Task"):
            join()
    assert pairs(a, b) == set()


def test_a_generator_is_a_type_error_too() -> None:
    a = make("task", "a")
    with pytest.raises(TypeError, match="generator"):
        a >> (make("task") for _ in range(2))  # type: ignore[type-var]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_waits_for_itself(kind: str) -> None:
    a, b = make(kind, "a"), make("task", "b")
    for join in (lambda: a >> a, lambda: a << a, lambda: a >> [b, a], lambda: [b, a] >> a, lambda: a.depends_on(a)):
        with pytest.raises(CircularDependencyError, match=f"{kind} 'a' → {kind} 'a'"):
            join()
    assert pairs(a, b) == set(), "what stood beside it in the list must not be joined either"


def test_equal_edges_may_be_said_twice() -> None:
    a, b = make("task", "a"), make("task", "b")
    a >> b
    b << a
    assert pairs(a, b) == {("a", "b")}


def test_an_edge_knows_its_ends_and_that_it_is_not_stored() -> None:
    a, b = make("task", "a"), make("task", "b")
    a >> b
    (edge,) = a.outgoing
    assert b.incoming == [edge]
    assert isinstance(edge, Edge)
    assert (edge.previous, edge.next, edge.applied) == (a, b, False)
    assert a.incoming == b.outgoing == ()


def test_a_long_chain_is_built_without_recursion() -> None:
    nodes = [make("task", "step") for _ in range(20_000)]
    for previous, following in pairwise(nodes):
        previous >> following
    assert len(nodes[-1].incoming) == 1


# ---------------------------------------------------------------- membership


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrong", [0, -1, 2**63, 1.5, "7", True, Group("not its id")], ids=repr)
def test_a_group_is_named_by_its_id(kind: str, wrong: Any) -> None:
    field = "group_id" if kind == "task" else "parent_group_id"
    with pytest.raises(InputError, match=field):
        setattr(make(kind), field, wrong)
    with pytest.raises(InputError, match=field):
        Task("a.b", group_id=wrong) if kind == "task" else Group("g", parent_group_id=wrong)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_stored_does_not_move_to_another_group(kind: str) -> None:
    """Its row would stay where it is, and the counters of the groups are made from the rows."""
    group, node = Group("g"), make(kind)
    field = "group_id" if kind == "task" else "parent_group_id"
    setattr(node, field, group.id)
    node.applied = True
    setattr(node, field, group.id)  # where it is already
    for elsewhere in (Group("h").id, None):
        with pytest.raises(Conflict, match="stored"):
            setattr(node, field, elsewhere)
    assert node.group is group


# ---------------------------------------------------------------- memory


def test_what_nobody_holds_any_more_is_forgotten() -> None:
    gc.collect()
    before = len(node_module._groups_in_memory)
    group = Group("g")
    with group:
        task = Task("some.module.f")
        inner = Group("inner")
    task >> inner >> Task("some.module.g")
    traces = [weakref.ref(node) for node in (group, task, inner)]
    assert len(node_module._groups_in_memory) == before + 2
    del group, task, inner
    gc.collect()
    assert [trace() for trace in traces] == [None, None, None]
    assert len(node_module._groups_in_memory) == before


def test_nothing_is_gathered_outside_of_a_workflow() -> None:
    assert collector.get() is None
    gathered: list[Node] = []
    token = collector.set(gathered)
    try:
        group, task = Group("g"), Task("some.module.f")
    finally:
        collector.reset(token)
    Task("some.module.later")
    assert gathered == [group, task]
