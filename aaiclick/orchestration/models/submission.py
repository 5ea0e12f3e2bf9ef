"""A submission: new nodes and edges of one job that are stored in one transaction."""

from __future__ import annotations

from dataclasses import dataclass, field

from aaiclick.errors import ValueExposed
from aaiclick.orchestration.models.group import Group
from aaiclick.orchestration.models.job import Job
from aaiclick.orchestration.models.node import Edge
from aaiclick.orchestration.models.task import Task
from aaiclick.telemetry.masks import is_mentioned

INSTEAD = "Pass a Secret in its place."


@dataclass(slots=True)
class Submission:
    """New tasks, groups and edges for one job; `new_job` is set if the job itself is new.

    `whole`: no caller is expected to add to the new job, so without tasks it is complete at once.
    """

    job_id: int
    tasks: list[Task] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    new_job: Job | None = None
    whole: bool = False

    def refuse_exposed(self) -> None:
        """Raise ValueExposed if a name, an argument or a result contains the value of a Secret resolved here."""
        for task in self.tasks:
            if is_mentioned(task.kwargs_json) or is_mentioned(task.name):
                raise ValueExposed(what=f"Task {task.id}", hint=INSTEAD)
        if self.new_job is not None and is_mentioned(self.new_job.result_json or ""):
            raise ValueExposed(what=f"The result of job {self.new_job.id}", hint=INSTEAD)
        for named in (*self.groups, *([self.new_job] if self.new_job else ())):
            if is_mentioned(named.name):
                raise ValueExposed(what=f"The name of {type(named).__name__.lower()} {named.id}", hint=INSTEAD)

    def hand_over(self) -> None:
        """Mark all nodes and edges as stored in the job, so that a later `apply` does not submit them again."""
        for node in (*self.tasks, *self.groups):
            node.job_id, node.applied = self.job_id, True
        for edge in self.edges:
            edge.applied = True
