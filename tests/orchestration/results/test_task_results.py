"""What a workflow returns, in its stored form and read back."""

from __future__ import annotations

import pytest

from aaiclick.errors import InputError, NotFound, ValueNotPortable, ValueTooLarge
from aaiclick.orchestration import Group, Task, TaskResult, as_task
from aaiclick.orchestration.results.task_results import Results, encode_returned
from aaiclick.orchestration.rules.values.encoding import encode_value
from tests.orchestration import sample_flows as flows


def stored(value: object) -> str:
    return encode_value(value, bytes_max=10**6)


def test_plain_values_come_back_as_they_went() -> None:
    looks_like_ours = [{"object_type": "object", "table": "t"}, {"marks": [[[], "x"]]}]
    values: list[object] = [None, 0, "", [], {}, (1, {2: b"3"}), *looks_like_ours]
    for value in values:
        text, named = encode_returned(value)
        assert Results().decode(text) == value
        assert named == []


def test_tasks_become_their_results_wherever_they_are() -> None:
    a, b = as_task(flows.add(1, 2)), as_task(flows.add(3, 4))
    text, named = encode_returned({"x": [a, (b, a)], "y": 1})
    assert named == [a, b, a]
    results = {a.id: stored("A"), b.id: stored(("B",))}
    assert Results(results).decode(text) == {"x": ["A", (("B",), "A")], "y": 1}


def test_a_group_becomes_its_members_results_in_order() -> None:
    group = Group("g")
    text, named = encode_returned([group])
    assert named == [group]
    assert Results({1: stored("one"), 2: stored("two"), 3: None}, {group.id: [2, 1, 3]}).decode(text) == [
        ["two", "one", None]
    ]


def test_a_group_without_members_is_an_empty_list() -> None:
    group = Group("g")
    text, _ = encode_returned(group)
    assert Results(members={group.id: []}).decode(text) == []


def test_what_is_gone_is_not_taken_for_nothing() -> None:
    """A None, or an empty list, would be a result."""
    task = as_task(flows.add(1, 2))
    assert Results({task.id: None}).decode(encode_returned(task)[0]) is None
    for kind, node in (("task", task), ("group", Group("g"))):
        with pytest.raises(NotFound, match=f"No {kind} with id {node.id}"):
            Results().decode(encode_returned([node])[0])


def test_a_task_result_hands_on_its_data_and_names_its_tasks() -> None:
    a, b = as_task(flows.add(1, 2)), as_task(flows.add(3, 4))
    text, named = encode_returned(TaskResult(data={"b": b}, tasks=[a]))
    assert named == [a, b]
    assert Results({b.id: stored(5)}).decode(text) == {"b": 5}


def test_a_task_result_without_data_hands_on_the_results_of_its_tasks() -> None:
    a, group = as_task(flows.add(1, 2)), Group("g")
    text, named = encode_returned(TaskResult(tasks=[a, group]))
    assert set(named) == {a, group}
    assert Results({a.id: stored(3), 9: stored(9)}, {group.id: [9]}).decode(text) == [3, [9]]


def test_two_task_results_do_not_share_their_list() -> None:
    assert TaskResult().tasks is not TaskResult().tasks
    assert TaskResult() == TaskResult(data=None, tasks=[])


@pytest.mark.parametrize("tasks", [5, None, "ab", [5], [None], {"a": 1}])
def test_anything_but_tasks_is_refused(tasks: list[Task | Group]) -> None:
    with pytest.raises(InputError, match=r"TaskResult\.tasks.*a list of Tasks and Groups"):
        encode_returned(TaskResult(tasks=tasks))


def test_one_task_alone_is_not_a_list_of_tasks() -> None:
    with pytest.raises(InputError, match="it must be a list of Tasks and Groups"):
        encode_returned(TaskResult(tasks=flows.add(1, 2)))  # type: ignore[arg-type]


def test_what_cannot_travel_is_refused_with_its_place() -> None:
    with pytest.raises(ValueNotPortable, match=r"result\.a\[0\]"):
        encode_returned({"a": [object()]})
    with pytest.raises(ValueTooLarge, match="result takes"):
        encode_returned("x" * 100_000_001)


def test_no_result_is_none() -> None:
    assert Results().decode(None) is None
    assert Results().decode("null") is None
