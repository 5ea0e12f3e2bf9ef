"""What keeps each node from running a task that has needs, for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from aaiclick.orchestration.rules.nodes import NodeState, NodeStatus
from aaiclick.orchestration.rules.placement import Place, misses
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


def standings(needs: Mapping[str, Any], nodes: Iterable[KnownNode], running: Mapping[int, int]) -> list[NodeStanding]:
    """Return the standing of each node; `running` is how many tasks of the same function each runs."""
    return [_standing(needs, node, running.get(node.id, 0)) for node in nodes]


def _standing(needs: Mapping[str, Any], node: KnownNode, running: int) -> NodeStanding:
    missing = misses(needs, node)
    if node.status == NodeStatus.DEAD:
        missing.append("it has no live worker")
    elif node.state != NodeState.OPEN:
        missing.append("it is cordoned" if node.state == NodeState.CORDONED else "it is being drained")
    most = needs.get("max_parallel")
    is_full = most is not None and running >= most
    if is_full:
        missing.append(f"it runs {running} tasks of this function, allowed are {most}")
    return NodeStanding(node.name, str(node.status), str(node.state), missing, is_full and len(missing) == 1)


def told(found: Sequence[NodeStanding]) -> str:
    """Return what is missing at the first nodes, as one line."""
    words = [
        f"{escape_for_terminal(node.name)} ({'; '.join(map(escape_for_terminal, node.missing))})" for node in found
    ]
    if len(words) > SHOWN_MAX:
        words[SHOWN_MAX:] = [f"and {len(words) - SHOWN_MAX} more"]
    return ", ".join(words) or "no node is registered"
