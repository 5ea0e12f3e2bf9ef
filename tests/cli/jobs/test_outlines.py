"""What is shown of a graph."""

from collections.abc import Iterable
from typing import NamedTuple

from aaiclick.cli.jobs import outlines
from aaiclick.cli.jobs.outlines import Outline, outline, tree_lines


class Task(NamedTuple):
    id: int
    name: str
    status: str = "pending"
    group_id: int | None = None


class Group(NamedTuple):
    id: int
    name: str
    parent_group_id: int | None = None


class Edge(NamedTuple):
    previous_id: int
    next_id: int


def drawn(whole: Outline, **options: bool) -> list[str]:
    return [
        line.branches + " ".join(filter(None, (line.text, line.status, line.more)))
        for line in tree_lines(whole, **options)
    ]


def parts(count: int, group_id: int | None = None, *, failed: Iterable[int] = ()) -> list[Task]:
    return [
        Task(100 + number, f"part {number}", "failed" if number in failed else "completed", group_id)
        for number in range(count)
    ]


def test_groups_hold_what_is_in_them_and_each_says_what_it_waits_for() -> None:
    tasks = [Task(1, "read", "completed"), Task(3, "a", "failed", 2), Task(5, "b", "pending", 4), Task(6, "load")]
    groups = [Group(2, "parts"), Group(4, "inner", 2), Group(7, "empty")]
    edges = [Edge(1, 2), Edge(1, 6), Edge(2, 6), Edge(3, 6), Edge(5, 6), Edge(99, 6)]
    assert drawn(outline(tasks, groups, edges)) == [
        "├─ read completed (1)",
        "├─ parts/ (1 failed, 1 pending) ← read",
        "│  ├─ a failed (3)",
        "│  └─ inner/ (1 pending)",
        "│     └─ b pending (5)",
        "├─ load pending (6) ← read, parts, a and 1 more",
        "└─ empty/ (no tasks)",
    ]


def test_of_a_large_group_trouble_is_shown_and_the_rest_is_counted() -> None:
    whole = outline(parts(1000, 1, failed=[7, 990]), [Group(1, "parts")], [])
    lines = drawn(whole)
    assert lines[0] == "└─ parts/ (998 completed, 2 failed)"
    assert len(lines) == outlines.CHILDREN_SHOWN + 2
    assert [line for line in lines if "part 7 " in line or "part 990 " in line] == [
        "   ├─ part 7 failed (107)",
        "   ├─ part 990 failed (1090)",
    ]
    assert lines[-1] == "   └─ … 988 more tasks: 988 completed"
    assert len(drawn(whole, everything=True)) == 1001


def test_what_has_no_group_is_cut_too() -> None:
    lines = drawn(outline(parts(500), [], []))
    assert len(lines) == outlines.ROOTS_SHOWN + 1
    assert lines[-1] == "└─ … 440 more tasks: 440 completed"


def test_groups_that_are_left_out_are_counted_by_their_tasks() -> None:
    groups = [Group(number, f"g{number}") for number in range(1, 90)]
    tasks = [Task(1000 + number, "t", "pending", number) for number in range(1, 90)]
    assert drawn(outline(tasks, groups, []))[-1] == "└─ … 29 more tasks: 29 pending"


def test_a_deep_nest_is_cut_and_recurses_nowhere() -> None:
    groups = [Group(number, f"g{number}", number - 1 or None) for number in range(1, 3000)]
    whole = outline([Task(9999, "deep", "running", 2999)], groups, [])
    lines = drawn(whole)
    assert len(lines) == outlines.DEPTH_SHOWN + 1
    assert lines[-1].endswith("… 1 inside, deeper than is shown: 1 running")
    assert len(drawn(whole, everything=True)) == 3000
