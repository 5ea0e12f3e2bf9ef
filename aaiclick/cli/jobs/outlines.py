"""A job's graph as a tree of groups and tasks, and what of it is shown: of large groups a part, the rest is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

CHILDREN_SHOWN = 12
ROOTS_SHOWN = 60
DEPTH_SHOWN = 12
WAITS_SHOWN = 3

_FIRST = ("failed", "pending_cleanup", "running", "claimed", "upstream_failed", "cancelled", "skipped")
"""What is shown of many: trouble before work, work before what waits or is done."""


@dataclass(slots=True)
class Node:
    """A task, or a group with its members."""

    id: int
    name: str
    status: str | None
    """None for a group."""
    children: list[Node] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """Of a group: its tasks at any depth, by status."""
    waits_for: list[int] = field(default_factory=list)

    @property
    def is_group(self) -> bool:
        return self.status is None


@dataclass(slots=True)
class Outline:
    """The whole graph: the nodes outside of groups, and all nodes by id."""

    roots: list[Node]
    nodes: dict[int, Node]
    parents: dict[int, int]


def outline(tasks: Iterable[Any], groups: Iterable[Any], dependencies: Iterable[Any]) -> Outline:
    """Return the outline of a graph's rows."""
    nodes = {row.id: Node(row.id, row.name, None) for row in groups}
    parents = {row.id: row.parent_group_id for row in groups if row.parent_group_id in nodes}
    for row in tasks:
        nodes[row.id] = Node(row.id, row.name, str(row.status))
        above = row.group_id if row.group_id in nodes else None
        if above is not None:
            parents[row.id] = above
        while above is not None:
            nodes[above].counts[str(row.status)] += 1
            above = parents.get(above)
    for row in dependencies:
        if row.next_id in nodes and row.previous_id in nodes:
            nodes[row.next_id].waits_for.append(row.previous_id)
    roots: list[Node] = []
    for node in sorted(nodes.values(), key=lambda node: node.id):
        above = parents.get(node.id)
        (roots if above is None else nodes[above].children).append(node)
    return Outline(roots, nodes, parents)


def chosen(nodes: Sequence[Node], most: int) -> tuple[list[Node], Counter[str]]:
    """Return up to this many nodes in order, preferring those in trouble, and counts of the tasks left out."""
    if len(nodes) <= most:
        return list(nodes), Counter()
    kept = {node.id for node in sorted(nodes, key=_urgency)[:most]}
    left: Counter[str] = Counter()
    for node in nodes:
        if node.id not in kept:
            left += node.counts if node.is_group else Counter([node.status or ""])
    return [node for node in nodes if node.id in kept], left


def _urgency(node: Node) -> tuple[int, int]:
    states = node.counts if node.is_group else {node.status: 1}
    ranks = [rank for rank, status in enumerate(_FIRST) if status in states]
    return (min(ranks, default=len(_FIRST)), node.id)


def in_words(counts: Counter[str]) -> str:
    """Return the counts by status in words."""
    return ", ".join(f"{number} {status}" for status, number in sorted(counts.items())) or "no tasks"


@dataclass(slots=True, frozen=True)
class OutlineLine:
    """One line of the tree: its branches and its node."""

    branches: str
    text: str
    status: str | None = None
    more: str = ""


def tree_lines(whole: Outline, *, everything: bool = False) -> Iterator[OutlineLine]:
    """Return the graph as a tree: groups with their members, and after `←` what each node waits for.

    Unless everything is requested, groups are folded beyond a number of children and a depth.
    """
    shown, left = (whole.roots, Counter[str]()) if everything else chosen(whole.roots, ROOTS_SHOWN)
    stack = list(reversed(_placed(shown, left, "")))
    while stack:
        node, before, is_last, depth, left = stack.pop()
        branches = before + ("└─ " if is_last else "├─ ")
        if node is None:
            yield OutlineLine(branches, f"… {sum(left.values())} more tasks: {in_words(left)}")
            continue
        yield _line(node, branches, whole)
        if not node.children:
            continue
        inside = before + ("   " if is_last else "│  ")
        if depth >= DEPTH_SHOWN and not everything:
            yield OutlineLine(
                inside + "└─ ", f"… {len(node.children)} inside, deeper than is shown: {in_words(node.counts)}"
            )
            continue
        shown, left = (node.children, Counter[str]()) if everything else chosen(node.children, CHILDREN_SHOWN)
        stack += reversed(_placed(shown, left, inside, depth + 1))


Placed = tuple[Node | None, str, bool, int, Counter[str]]


def _placed(nodes: Sequence[Node], left: Counter[str], before: str, depth: int = 1) -> list[Placed]:
    cut = bool(left)
    placed: list[Placed] = [
        (node, before, number == len(nodes) and not cut, depth, Counter()) for number, node in enumerate(nodes, 1)
    ]
    return [*placed, (None, before, True, depth, left)] if cut else placed


def _line(node: Node, branches: str, whole: Outline) -> OutlineLine:
    text = f"{node.name}/" if node.is_group else node.name
    more = f"({in_words(node.counts)})" if node.is_group else f"({node.id})"
    if node.waits_for:
        names = [whole.nodes[each].name for each in node.waits_for[:WAITS_SHOWN]]
        rest = len(node.waits_for) - len(names)
        more += f" ← {', '.join(names)}" + (f" and {rest} more" if rest else "")
    return OutlineLine(branches, text, node.status, more)
