"""Runs that made tasks, without bodies."""

from __future__ import annotations

from collections.abc import Sequence

from aaiclick.orchestration.gathering import gather
from aaiclick.orchestration.models import Claim, Done
from aaiclick.orchestration.models.children import Children
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.results.task_results import encode_returned


def grown(claim: Claim, *made: Node, returns: Node | Sequence[Node] = ()) -> Done:
    """The report of a run that made these, and returned those of them."""
    text, returned = encode_returned(returns if isinstance(returns, Node) else list(returns) or None)
    submission = gather(claim.job_id, [*made, *returned])
    children = Children.of(submission, returned, claim.group_id)
    submission.hand_over()
    return Done(claim.task_id, claim.epoch, text, children=children)
