"""Nodes: the machines that run tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from aaiclick.representations.fields import Id, Time, facts_of, last_of

if TYPE_CHECKING:
    from aaiclick.orchestration.models.node_info import NodeInfo
    from aaiclick.orchestration.store.nodes.states import Removed


class NodeAnswer(TypedDict):
    """A node, with what is known of its workers that have a session."""

    id: Id
    name: str
    pool: str | None
    state: str
    status: str
    workers: int
    slots: int
    running: int
    capabilities: Mapping[str, Any]
    executor_types: list[str]
    resources: Mapping[str, Any]
    last_heartbeat: Time | None
    registered_at: Time
    described_at: Time


class NodePage(TypedDict):
    """Nodes in the order of their names. `next` is the `after` of the page after this; null on the last one."""

    nodes: list[NodeAnswer]
    next: str | None


class NodeRemoved(TypedDict):
    """How many sessions a removal ended, and how many runs were given to others."""

    name: str
    sessions: int
    freed: int


def node_answer(node: NodeInfo) -> NodeAnswer:
    """Return a node as JSON data."""
    return facts_of(NodeAnswer, node)


def node_page(nodes: Sequence[NodeInfo], limit: int | None) -> NodePage:
    """Return a page of nodes."""
    last = last_of(nodes, limit)
    return NodePage(nodes=[node_answer(node) for node in nodes], next=None if last is None else last.name)


def node_removed(name: str, removed: Removed) -> NodeRemoved:
    """Return what a removal ended."""
    return NodeRemoved(name=name, sessions=removed.sessions, freed=removed.claims)
