"""What a run made, on its way to the store and back."""

from __future__ import annotations

import msgspec

from aaiclick.orchestration.gathering import gather
from aaiclick.orchestration.models import Group, Task
from aaiclick.orchestration.models.children import Children, stored_node
from aaiclick.orchestration.rules.retries import RetryPolicy
from tests.support.orchestra import make


def some() -> tuple[Children, Task, Task, Group]:
    group = Group("g")
    first = Task("a.f", {"x": 1}, name="first", retry=RetryPolicy(max_retries=3), priority=5, timeout_s=7.0)
    second = Task("a.f", {"x": first}, name="second", group_id=group.id, critical=False)
    group.output = second
    return Children.of(gather(9, [first, second, group]), [second, group, second], 44), first, second, group


def test_what_is_in_no_group_joins_that_of_its_parent() -> None:
    children, first, second, group = some()
    assert {new.id: new.group_id for new in children.tasks} == {first.id: 44, second.id: group.id}
    assert {new.id: new.parent_group_id for new in children.groups} == {group.id: 44}
    assert children.job_id == 9


def test_what_is_returned_twice_is_named_once() -> None:
    children, _, second, group = some()
    assert children.returned == [("task", second.id), ("group", group.id)]


def test_it_travels_between_processes_unchanged() -> None:
    children, *_ = some()
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(children), type=Children) == children


def test_the_store_gets_the_same_nodes_with_their_parent() -> None:
    children, first, second, group = some()
    submission = children.submission(9, 7, 3)
    one, two = submission.tasks
    for given, made in ((first, one), (second, two)):
        for field in ("id", "name", "entrypoint", "kwargs_json", "needs_inputs", "critical", "priority", "timeout_s"):
            assert getattr(made, field) == getattr(given, field)
        assert (made.parent_task_id, made.parent_epoch, made.retry) == (7, 3, given.retry)
        assert not made.applied
    (inside,) = submission.groups
    assert (inside.id, inside.name, inside.output_task_id, inside.parent_task_id) == (group.id, "g", second.id, 7)
    assert [(edge.previous, edge.next) for edge in submission.edges] == [(one, two)]


def test_edges_may_lead_to_what_is_stored() -> None:
    stored, new = stored_node("group", 5), make("new")
    new.depends_on(stored)
    children = Children.of(gather(9, [new]), [], None)
    (edge,) = children.submission(9, 7, 3).edges
    assert (edge.previous.id, edge.previous.kind, edge.previous.applied) == (5, "group", True)
    assert isinstance(stored_node("task", 6), Task)
