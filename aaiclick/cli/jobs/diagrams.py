"""A job's graph for programs that draw: Graphviz and Mermaid. Large groups are one box; what is cut is said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from aaiclick.cli.jobs.outlines import CHILDREN_SHOWN, Node, Outline, chosen, in_words
from aaiclick.cli.output import printable

NODES_SHOWN = 200

_COLOURS = {
    "completed": "#c8e6c9",
    "failed": "#ffcdd2",
    "upstream_failed": "#ffe0b2",
    "cancelled": "#e0e0e0",
    "skipped": "#eceff1",
    "running": "#bbdefb",
    "claimed": "#bbdefb",
}


class Diagram:
    """The drawn part of a graph: boxes, frames around them, and arrows between visible nodes."""

    def __init__(self, whole: Outline, *, everything: bool = False) -> None:
        self.whole = whole
        self.roots, self.cut = whole.roots, Counter[str]()
        self._everything = everything
        self._seen: set[int] = set()
        if not everything:
            self.roots, self.cut = chosen(whole.roots, NODES_SHOWN)
        self._see(self.roots)

    def is_folded(self, node: Node) -> bool:
        """Return whether a group is drawn as one box."""
        if not node.is_group or not node.children:
            return node.is_group
        return not self._everything and (len(node.children) > CHILDREN_SHOWN or node.children[0].id not in self._seen)

    def _see(self, roots: list[Node]) -> None:
        """Everything that is drawn: level by level, until there is enough."""
        level = roots
        while level:
            self._seen |= {node.id for node in level}
            inside = [node.children for node in level if node.children]
            if not self._everything:
                inside = [children for children in inside if len(children) <= CHILDREN_SHOWN]
            level = []
            for children in inside:
                if self._everything or len(self._seen) + len(level) + len(children) <= NODES_SHOWN:
                    level += children

    def arrows(self) -> Iterator[tuple[int, int]]:
        """Return the dependencies between drawn nodes, each once."""
        told: set[tuple[int, int]] = set()
        for node in self.whole.nodes.values():
            for previous in node.waits_for:
                ends = self._drawn(previous), self._drawn(node.id)
                if None not in ends and ends[0] != ends[1] and ends not in told:
                    told.add(ends)  # type: ignore[arg-type]
                    yield ends  # type: ignore[misc]

    def _drawn(self, wanted: int) -> int | None:
        """The node itself, or the innermost group around it that is drawn."""
        found: int | None = wanted
        while found is not None and found not in self._seen:
            found = self.whole.parents.get(found)
        return found


def label(node: Node) -> str:
    """Return the text of a box."""
    name = printable(node.name)
    return f"{name} ({in_words(node.counts)})" if node.is_group else f"{name} ({node.status})"


def _walk(diagram: Diagram) -> Iterator[tuple[str, Node]]:
    """Boxes, and the beginnings and ends of frames, in the order in which they are written."""
    stack: list[tuple[str, Node]] = [("node", node) for node in reversed(diagram.roots)]
    while stack:
        kind, node = stack.pop()
        if kind == "node" and node.is_group and not diagram.is_folded(node):
            yield "begin", node
            stack.append(("end", node))
            stack += [("node", child) for child in reversed(node.children)]
        else:
            yield kind, node


def to_dot(diagram: Diagram) -> Iterator[str]:
    """Return the graph for Graphviz: `aaiclick job graph ID --format dot | dot -Tsvg`."""
    yield "digraph job {"
    yield "  rankdir=LR; node [shape=box, style=filled, fillcolor=white];"
    for kind, node in _walk(diagram):
        if kind == "begin":
            yield f"  subgraph cluster_{node.id} {{ label={_quoted(printable(node.name))}; n{node.id} [shape=point];"
        elif kind == "end":
            yield "  }"
        else:
            shape = ", shape=folder" if node.is_group else ""
            colour = _COLOURS.get(node.status or "", "white")
            yield f'  n{node.id} [label={_quoted(label(node))}, fillcolor="{colour}"{shape}];'
    for previous, following in diagram.arrows():
        yield f"  n{previous} -> n{following};"
    if diagram.cut:
        yield f"  cut [shape=plaintext, label={_quoted(f'{sum(diagram.cut.values())} more tasks are not shown')}];"
    yield "}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def to_mermaid(diagram: Diagram) -> Iterator[str]:
    """Return the graph for Mermaid, which GitHub and many wikis draw."""
    yield "flowchart LR"
    for kind, node in _walk(diagram):
        if kind == "begin":
            yield f'  subgraph n{node.id}["{_entities(printable(node.name))}"]'
        elif kind == "end":
            yield "  end"
        elif node.is_group:
            yield f'  n{node.id}[["{_entities(label(node))}"]]'
        else:
            yield f'  n{node.id}["{_entities(label(node))}"]'
            if node.status in _COLOURS:
                yield f"  style n{node.id} fill:{_COLOURS[node.status]}"
    for previous, following in diagram.arrows():
        yield f"  n{previous} --> n{following}"
    if diagram.cut:
        yield f'  cut["{sum(diagram.cut.values())} more tasks are not shown"]'


def _entities(text: str) -> str:
    """Whatever could end a label, or be taken for HTML or Markdown, as its number."""
    return "".join(c if c.isalnum() or c in " .,:;()_-/" else f"#{ord(c)};" for c in text)
