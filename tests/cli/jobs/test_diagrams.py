"""Graphs for programs that draw."""

import re

from aaiclick.cli.jobs.diagrams import NODES_SHOWN, Diagram, to_dot, to_mermaid
from aaiclick.cli.jobs.outlines import outline
from tests.cli.jobs.test_outlines import Edge, Group, Task, parts

SMALL = outline(
    [Task(1, "read", "completed"), Task(3, "a", "failed", 2), Task(4, "b", "pending", 2), Task(6, "load")],
    [Group(2, "parts")],
    [Edge(1, 2), Edge(2, 6)],
)


def test_graphviz() -> None:
    assert list(to_dot(Diagram(SMALL))) == [
        "digraph job {",
        "  rankdir=LR; node [shape=box, style=filled, fillcolor=white];",
        '  n1 [label="read (completed)", fillcolor="#c8e6c9"];',
        '  subgraph cluster_2 { label="parts"; n2 [shape=point];',
        '  n3 [label="a (failed)", fillcolor="#ffcdd2"];',
        '  n4 [label="b (pending)", fillcolor="white"];',
        "  }",
        '  n6 [label="load (pending)", fillcolor="white"];',
        "  n1 -> n2;",
        "  n2 -> n6;",
        "}",
    ]


def test_mermaid() -> None:
    assert list(to_mermaid(Diagram(SMALL))) == [
        "flowchart LR",
        '  n1["read (completed)"]',
        "  style n1 fill:#c8e6c9",
        '  subgraph n2["parts"]',
        '  n3["a (failed)"]',
        "  style n3 fill:#ffcdd2",
        '  n4["b (pending)"]',
        "  end",
        '  n6["load (pending)"]',
        "  n1 --> n2",
        "  n2 --> n6",
    ]


def test_a_large_group_is_one_box_to_which_its_arrows_lead_once() -> None:
    tasks = [Task(2, "read"), *parts(50, 1), Task(999, "load")]
    edges = [*(Edge(2, 100 + number) for number in range(50)), *(Edge(100 + number, 999) for number in range(50))]
    edges += [Edge(100, 101)]
    lines = list(to_mermaid(Diagram(outline(tasks, [Group(1, "parts")], edges))))
    assert lines == [
        "flowchart LR",
        '  n1[["parts (50 completed)"]]',
        '  n2["read (pending)"]',
        '  n999["load (pending)"]',
        "  n2 --> n1",
        "  n1 --> n999",
    ]
    whole = Diagram(outline(tasks, [Group(1, "parts")], edges), everything=True)
    assert len([line for line in to_dot(whole) if "->" in line]) == 101


def test_what_is_too_much_is_cut_and_said() -> None:
    diagram = Diagram(outline(parts(1000), [], [Edge(100, 1099), Edge(100, 101)]))
    assert diagram.cut == {"completed": 800}
    for lines in (list(to_dot(diagram)), list(to_mermaid(diagram))):
        assert len(lines) < 2 * NODES_SHOWN + 10
        assert "800 more tasks are not shown" in "\n".join(lines)
    assert list(diagram.arrows()) == [(100, 101)]


def test_many_small_groups_are_opened_as_far_as_there_is_room() -> None:
    groups = [Group(number, f"g{number}") for number in range(1, 101)]
    tasks = [Task(1000 + number, f"t{number}", "pending", number % 100 + 1) for number in range(1000)]
    diagram = Diagram(outline(tasks, groups, []))
    boxes = [line for line in to_dot(diagram) if re.match(r"  (n\d+ \[|subgraph)", line)]
    assert len(boxes) == NODES_SHOWN


def test_names_cannot_break_out() -> None:
    name = 'x"]; <script>\\ #a\n\x1b[31m'
    whole = outline([Task(1, name)], [Group(2, name)], [])
    dot, mermaid = list(to_dot(Diagram(whole))), list(to_mermaid(Diagram(whole)))
    assert '  n1 [label="x\\"]; <script>\\\\ #a\\\\n\\\\x1b[31m (pending)", fillcolor="white"];' in dot
    for line in mermaid[1:]:
        assert line.count('"') == 2
        assert "<" not in line
        assert "\x1b" not in line
