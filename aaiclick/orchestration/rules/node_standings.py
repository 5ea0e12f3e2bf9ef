"""What keeps each node from running a task that has needs, for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from aaiclick.orchestration.rules.affinity import failed_on, wished_node
from aaiclick.orchestration.rules.nodes import NodeState, NodeStatus
from aaiclick.orchestration.rules.placement import Place, leaves_to_others, misses, prefers
from aaiclick.orchestration.rules.validation import escape_for_terminal

SHOWN_MAX = 5
"""Nodes that a line for people tells of."""


class KnownNode(Place, Protocol):
    """A node with its state and status: NodeInfo."""

    @property
    def id(self) -> int: ...
    @property
    def state(self) -> NodeState: ...
    @property
    def status(self) -> NodeStatus: ...


@dataclass(frozen=True, slots=True)
class NodeStanding:
    """A node, and what keeps it from running a task."""

    name: str
    status: str
    state: str
    missing: Sequence[str]
    """What it lacks; empty if nothing keeps it."""
    is_full: bool = False
    """Whether all that keeps it is that it runs as many tasks of the function as it may."""
    later: str = ""
    """Why it takes the task only after a while, or not while others may; empty if nothing is said against it."""


def standings(needs: Mapping[str, Any], nodes: Iterable[KnownNode], running: Mapping[int, int]) -> list[NodeStanding]:
    """Return the standing of each node; `running` is how many tasks of the same function each runs."""
    known = list(nodes)
    there = [node for node in known if node.state == NodeState.OPEN and node.status != NodeStatus.DEAD]
    return [_standing(needs, node, running.get(node.id, 0), there) for node in known]


def _standing(needs: Mapping[str, Any], node: KnownNode, running: int, there: Sequence[KnownNode]) -> NodeStanding:
    missing = misses(needs, node)
    if node.status == NodeStatus.DEAD:
        missing.append("it has no live worker")
    elif node.state != NodeState.OPEN:
        missing.append("it is cordoned" if node.state == NodeState.CORDONED else "it is being drained")
    most = needs.get("max_parallel")
    is_full = most is not None and running >= most
    if is_full:
        missing.append(f"it runs {running} tasks of this function, allowed are {most}")
    later = _later(needs, node, there)
    return NodeStanding(node.name, str(node.status), str(node.state), missing, is_full and len(missing) == 1, later)


def _later(needs: Mapping[str, Any], node: KnownNode, there: Sequence[KnownNode]) -> str:
    """Return why a node leaves the task to others, at least for a while."""
    after = f"it takes the task once that has waited for {needs.get('patience_s', 0):g} s"
    if failed_on(needs, node.name):
        if leaves_to_others(needs, node, there):
            return "the last attempt failed here, and other nodes may run it"
        return f"the last attempt failed here; since no other node may run it, {after}"
    wished = wished_node(needs, node.name)
    if wished != node.name:
        ran = "the last attempt" if "previous" in needs else "most of its inputs"
        return f"node {wished} ran {ran}; {after}"
    return "" if prefers(needs, node) else f"other nodes are preferred; {after}"


def told(found: Sequence[NodeStanding]) -> str:
    """Return what is missing at the first nodes, and what is said against them, as one line."""
    words = [
        f"{escape_for_terminal(node.name)} ({'; '.join(map(escape_for_terminal, _against(node)))})" for node in found
    ]
    if len(words) > SHOWN_MAX:
        words[SHOWN_MAX:] = [f"and {len(words) - SHOWN_MAX} more"]
    return ", ".join(words) or "no node is registered"


def _against(node: NodeStanding) -> list[str]:
    return [*node.missing, *filter(None, [node.later])]
