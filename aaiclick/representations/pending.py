"""Why a task does not run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from aaiclick.representations.fields import Id, Time, facts_of

if TYPE_CHECKING:
    from aaiclick.orchestration.rules.pending import Pending


class BlockerAnswer(TypedDict):
    """A task or group that something waits for."""

    id: Id
    kind: str
    name: str
    status: str
    open_count: int
    gate: str | None


class NodeStandingAnswer(TypedDict):
    """A node, and what keeps it from running a task; nothing, if `missing` and `later` are empty.

    `later`: why it takes the task only after a while, or not while other nodes may.
    """

    name: str
    status: str
    state: str
    missing: list[str]
    later: str


class PendingAnswer(TypedDict):
    """Why a task does not run: `line` says it in words, the rest for programs."""

    task_id: Id
    job_id: Id
    name: str
    status: str
    reason: str
    line: str
    waits_for: list[BlockerAnswer]
    more: int
    run_after: Time | None
    delay_s: float | None
    before: int | None
    worker_id: Id | None
    live_workers: int | None
    slots: int | None
    slots_taken: int | None
    needs: dict[str, Any]
    nodes: list[NodeStandingAnswer]


def pending_answer(found: Pending) -> PendingAnswer:
    """Return what holds a task back."""
    return facts_of(
        PendingAnswer,
        found,
        waits_for=[facts_of(BlockerAnswer, each) for each in found.waits_for],
        nodes=[facts_of(NodeStandingAnswer, each) for each in found.nodes],
    )
