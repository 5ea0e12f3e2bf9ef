"""Collects the tasks and groups that a body makes, and puts them and its result into the report."""

from __future__ import annotations

from aaiclick.config import settings
from aaiclick.errors import ValueExposed, ValueNotPortable
from aaiclick.orchestration.checks import check_entrypoints
from aaiclick.orchestration.execution.runs.failures import failure_of
from aaiclick.orchestration.execution.runs.run_services import RunServices
from aaiclick.orchestration.gathering import Staging, gather
from aaiclick.orchestration.models import Claim, Done, Report, Task
from aaiclick.orchestration.models.children import Children
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.results.task_results import TaskResult, encode_returned
from aaiclick.orchestration.rules.validation import shorten
from aaiclick.orchestration.rules.values.reference_marks import marks_of
from aaiclick.telemetry.masks import is_mentioned


def new_staging(claim: Claim, services: RunServices | None = None) -> Staging:
    """Return the staging area for the tasks and groups that a run of this claim makes."""
    return Staging(claim.job_id, settings().task_children_max, None if services is None else services.slots)


def completed(claim: Claim, value: object, staging: Staging) -> Report:
    """Return the report of a body that returned `value` and made the tasks and groups in `staging`.

    A result that cannot be encoded fails the task permanently, since a retry would fail too (pitfall T21).
    """
    if isinstance(value, TaskResult) and not value.tasks:
        value = value.data
    try:
        text, returned = encode_returned(value, claim.job_id)
        if is_mentioned(text):
            raise ValueExposed(what="The result", hint="Return something else.")
        children = _children(claim, staging, returned) if staging or returned else None
    except Exception as error:  # encoding calls code of the user's objects, which may raise anything
        staging.forget()
        return failure_of(claim, error, permanent=True)
    return Done(claim.task_id, claim.epoch, text, children=children)


def _children(claim: Claim, staging: Staging, returned: list[Node]) -> Children | None:
    """Return the nodes that were made and not applied by the body; None if there are none.

    Raises ValueNotPortable if the task returns itself, its own group, or a task that needs its result.
    """
    for node in returned:
        if node.id == claim.task_id or node.id == claim.group_id:
            rule = "a task cannot return itself, or a group that contains it"
            raise ValueNotPortable(path="result", value=shorten(node), rule=rule, hint="")
        if isinstance(node, Task) and node.needs_inputs and ("task", claim.task_id) in marks_of(node.kwargs_json):
            rule = "its argument is the result of the task that returns it, and would be its own result"
            hint = "Pass it the value, or return another task."
            raise ValueNotPortable(path="result", value=shorten(node), rule=rule, hint=hint)
    made = [node for node in staging if not node.applied]
    submission = gather(claim.job_id, [*made, *returned])
    if not (submission.tasks or submission.groups or submission.edges or returned):
        return None
    check_entrypoints(submission.tasks)
    submission.refuse_exposed()
    children = Children.of(submission, returned, claim.group_id)
    submission.hand_over()
    return children
