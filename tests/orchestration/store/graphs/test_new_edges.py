"""Edges that are added to a stored graph."""

from __future__ import annotations

from dataclasses import replace

from aaiclick.orchestration.models.node import Edge
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.store.graphs.inserts import shape_of
from aaiclick.orchestration.store.graphs.new_edges import drop_known_edges, follow_results, too_late
from aaiclick.orchestration.store.session import Session
from tests.support.band import band
from tests.support.growing import grown
from tests.support.orchestra import Orchestra, make

__all__ = ["band"]


async def test_an_edge_from_a_task_that_returned_tasks_brings_edges_from_these(band: Orchestra) -> None:
    parent = make("parent")
    job = await band.submit(parent)
    (claim,) = await band.claim()
    child, late = make("child"), make("late")
    await band.report(grown(claim, child, returns=child))
    submission = Submission(job.id, tasks=[late], edges=[Edge(parent, late)])
    shape = shape_of(submission)

    async def follow(session: Session) -> Submission:
        copy = replace(submission)
        await follow_results(session, copy, shape, {})
        return copy

    followed = await band.database.transact(follow)
    assert {(edge.previous.id, edge.next.id) for edge in followed.edges} == {(parent.id, late.id), (child.id, late.id)}
    assert shape.edges == {(parent.id, late.id), (child.id, late.id)}
    assert len((await band.database.transact(follow)).edges) == 2


async def test_an_edge_that_is_stored_is_not_stored_again(band: Orchestra) -> None:
    a, b, c = make("a"), make("b"), make("c")
    a >> b
    job = await band.submit(a, b, c)
    submission = Submission(job.id, edges=[Edge(a, b), Edge(a, c)])
    shape = shape_of(submission)
    await band.database.read(lambda session: drop_known_edges(session, submission, shape))
    assert shape.edges == {(a.id, c.id)}
    assert [(edge.previous, edge.next) for edge in submission.edges] == [(a, c)]


def test_who_comes_too_late_is_told_for_what() -> None:
    a, b = make("a"), make("b")
    error = too_late(Submission(1, edges=[Edge(a, b)]), {b.id: "task 'b'"}, b.id, "running")
    assert "task 'b' cannot wait for task 'a': it is running already" in str(error)
    assert "what an enclosing group is to wait for" in str(too_late(Submission(1), {}, b.id, "running"))
