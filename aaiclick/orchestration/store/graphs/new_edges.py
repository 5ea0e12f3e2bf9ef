"""Edges that are added to a stored graph: those that follow from others, are stored already, or come too late.

The caller has locked the graph.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import select

from aaiclick.errors import AlreadyStarted
from aaiclick.orchestration.models.children import stored_node
from aaiclick.orchestration.models.node import Edge
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.graphs.graph import Shape
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.stored_results import returned_by
from aaiclick.orchestration.store.tables import dependencies


async def follow_results(
    session: Session, submission: Submission, shape: Shape, parents: Mapping[int, int | None]
) -> None:
    """Add edges: a node that is to wait for a task also waits for the tasks and groups which that one returned.

    Their results are part of its result. The same holds for a group with such a task inside. No group waits for what
    is inside itself. No run can return tasks meanwhile, since that takes the graph's lock too.
    """
    ends = {(edge.previous.kind, edge.previous.id) for edge in submission.edges}
    stored = {(kind, node) for kind, node in ends if node not in shape.tasks and node not in shape.groups}
    returned = await returned_by(session, stored, parents) if stored else {}
    known = {(edge.previous.id, edge.next.id) for edge in submission.edges}
    more = [
        Edge(stored_node(kind, node), edge.next)
        for edge in submission.edges
        for (kind, node), around in returned.get(edge.previous.id, {}).items()
        if (node, edge.next.id) not in known and edge.next.id != node and edge.next.id not in around
    ]
    submission.edges = [*submission.edges, *more]
    shape.edges.update((edge.previous.id, edge.next.id) for edge in more)


async def drop_known_edges(session: Session, submission: Submission, shape: Shape) -> None:
    """Remove from the submission the edges that are stored already."""
    new = shape.tasks.keys() | shape.groups.keys()
    pairs = [pair for pair in shape.edges if not new & set(pair)]
    if not pairs:
        return
    found = await session.rows(
        select(dependencies.c.previous_id, dependencies.c.next_id).where(
            session.any_of(dependencies.c.previous_id, sorted({previous for previous, _ in pairs})),
            session.any_of(dependencies.c.next_id, sorted({following for _, following in pairs})),
        )
    )
    known = {(row.previous_id, row.next_id) for row in found}
    shape.edges -= known
    submission.edges = [edge for edge in submission.edges if (edge.previous.id, edge.next.id) not in known]


def too_late(submission: Submission, names: Mapping[int, str], node: int, status: str) -> AlreadyStarted:
    """Return the error that says why a node that has begun cannot wait for more."""
    previous = [str(edge.previous) for edge in submission.edges if edge.next.id == node]
    wanted = ", ".join(previous[:3]) or "what an enclosing group is to wait for"
    return AlreadyStarted(what=names.get(node, str(node)), previous=wanted, status=status)
