"""What the tools are asked with. The descriptions are for an agent."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from aaiclick.data.lineage import STEPS_MAX
from aaiclick.orchestration.rules.nodes import NodeState, NodeStatus
from aaiclick.orchestration.rules.states import JobStatus, TaskStatus, WorkerStatus
from aaiclick.orchestration.rules.validation import NAME_LENGTH_MAX
from aaiclick.server import request_models
from aaiclick.server.mcp.bounds import LOG_BYTES_MAX, PAGE_DEFAULT, PAGE_MAX
from aaiclick.server.mcp.tools import Arguments

_ID = "^[0-9]{1,19}$"

JobId = Annotated[str, Field(pattern=_ID, description="The job's id: digits, as a string.")]
TaskId = Annotated[str, Field(pattern=_ID, description="The task's id: digits, as a string.")]
WorkerId = Annotated[str, Field(pattern=_ID, description="The worker's id: digits, as a string.")]
Before = Annotated[str | None, Field(pattern=_ID, description="The `next` of the previous page.")]
Limit = Annotated[int, Field(ge=1, le=PAGE_MAX, description="Return at most this many.")]
ObjectName = Annotated[str, Field(min_length=1, max_length=200, description="The Object's name, from list_objects.")]
EntryName = Annotated[str, Field(min_length=1, max_length=NAME_LENGTH_MAX, description="The registered job's name.")]
NodeName = Annotated[str, Field(min_length=1, max_length=NAME_LENGTH_MAX, description="The node's name.")]


class Nothing(Arguments):
    """No arguments."""


class FindJobs(Arguments):
    """Which jobs."""

    status: str | None = Field(default=None, description=f"Only jobs with this status: {', '.join(JobStatus)}.")
    name_like: str | None = Field(
        default=None, description="Only names that match this pattern: % stands for anything, _ for one character."
    )
    before: Before = None
    limit: Limit = PAGE_DEFAULT


class OneJob(Arguments):
    """Which job."""

    job_id: JobId


class JobGraph(OneJob):
    """Which job, and how much of it."""

    limit: Limit = PAGE_MAX


class JobTasks(OneJob):
    """Which tasks of which job."""

    status: str | None = Field(default=None, description=f"Only tasks with this status: {', '.join(TaskStatus)}.")
    after: Before = None
    limit: Limit = PAGE_DEFAULT


class Tasks(Arguments):
    """Which tasks."""

    status: str | None = Field(default=None, description=f"Only tasks of this status: {', '.join(TaskStatus)}.")
    name_like: str | None = Field(
        default=None, description="Only names like this: % stands for anything, _ for one character."
    )
    node: str | None = Field(default=None, description="Only tasks that a node has, or had last, by its name.")
    lane: int | None = Field(default=None, ge=0, lt=2**31, description="Only tasks of this lane.")
    blocked: str | None = Field(default=None, description="placement: only ready tasks that no live node may run.")
    before: Before = None
    limit: Limit = PAGE_DEFAULT


class Letters(Arguments):
    """Which page."""

    before: str | None = Field(
        default=None, pattern="^[0-9]{1,19}-[0-9]{1,19}$", description="The `next` of the previous page."
    )
    limit: Limit = PAGE_DEFAULT


class FailedTasks(Letters):
    """Which job, and which page."""

    job_id: JobId


class CachePage(Arguments):
    """Which remembered results."""

    entrypoint: str | None = Field(default=None, max_length=500, description="Only those of this function.")
    before: Before = None
    limit: Limit = PAGE_DEFAULT


class ClearCache(Arguments):
    """Which remembered results."""

    entrypoint: str | None = Field(default=None, max_length=500, description="Only those of this function.")
    entry_id: str | None = Field(default=None, pattern=_ID, description="Only this entry.")


class OneTask(Arguments):
    """Which task."""

    task_id: TaskId


class TaskLog(OneTask):
    """Which log, and how much of it."""

    epoch: int | None = Field(
        default=None,
        ge=0,
        lt=2**31,
        description="The attempt, by its epoch from list_task_runs; by default the newest.",
    )
    bytes: int = Field(
        default=8_000, ge=1, le=LOG_BYTES_MAX, description="The number of bytes from the end of the log."
    )
    until: int | None = Field(
        default=None, ge=0, lt=2**62, description="Read the bytes before this one: the `begins_at` of the last answer."
    )


class ListObjects(Arguments):
    """Which Objects."""

    contains: str | None = Field(default=None, max_length=200, description="Only names that contain this.")
    limit: int = Field(default=200, ge=1, le=1000, description="Return at most this many.")


class OneObject(Arguments):
    """Which Object."""

    name: ObjectName


class ReadObject(OneObject):
    """Which Object, and how many rows."""

    limit: Limit = PAGE_DEFAULT


class QueryObject(OneObject):
    """Which rows and columns of which Object."""

    columns: list[str] = Field(default_factory=list, max_length=1000, description="By default all.")
    where: list[request_models.Where] = Field(
        default_factory=list, max_length=50, description="Conditions that all must hold."
    )
    order_by: list[request_models.OrderBy] = Field(default_factory=list, max_length=50)
    limit: Limit = PAGE_DEFAULT


class TraceLineage(OneObject):
    """Which Object, or which column of it, in which direction, and how far."""

    column: str | None = Field(
        default=None, max_length=200, description="Only this column: what its values came from, or went to."
    )
    indirect: bool = Field(
        default=False, description="With a column: also sources that only decided which rows or values were chosen."
    )

    direction: str = Field(
        default="backward", description="backward: how it was made; forward: what it is used for; or both."
    )
    steps: int = Field(default=10, ge=1, le=min(100, STEPS_MAX), description="The maximum distance, in operations.")


class JobEvents(OneJob):
    """Which events of which job."""

    after: Before = None
    last: bool = Field(
        default=False, description="Return the last events, which tell how the job ended, instead of the first."
    )
    limit: Limit = PAGE_DEFAULT


class Workers(Arguments):
    """Which workers."""

    status: str | None = Field(default=None, description=f"Only workers with this status: {', '.join(WorkerStatus)}.")
    before: Before = None
    limit: Limit = PAGE_DEFAULT


class Nodes(Arguments):
    """Which nodes."""

    state: str | None = Field(default=None, description=f"Only nodes of this state: {', '.join(NodeState)}.")
    status: str | None = Field(default=None, description=f"Only nodes of this status: {', '.join(NodeStatus)}.")
    after: str | None = Field(default=None, max_length=200, description="The `next` of the page before.")
    limit: Limit = PAGE_DEFAULT


class OneNode(Arguments):
    """Which node."""

    name: NodeName


class RemoveNode(OneNode):
    """Which node, and how."""

    force: bool = Field(default=False, description="Also if its workers are alive: only for a machine that is gone.")


class Resources(Arguments):
    """Which resources."""

    name: str | None = Field(default=None, max_length=200, description="Only this resource.")
    node: str | None = Field(default=None, max_length=200, description="Only what this node has.")
    after: str | None = Field(default=None, max_length=250, description="The `next` of the page before.")
    limit: Limit = PAGE_DEFAULT


class OneResource(Arguments):
    """Which resource."""

    name: Annotated[str, Field(min_length=1, max_length=NAME_LENGTH_MAX, description="The resource's name.")]


class SetResource(OneResource):
    """Which resource, and how much there is."""

    amount: float = Field(ge=0, le=10**12, description="For all nodes together, with three decimals at most.")


class Entries(Arguments):
    """Which registered jobs."""

    enabled_only: bool = False


class OneEntry(Arguments):
    """Which registered job."""

    name: EntryName


class Fires(OneEntry):
    """Which times of which registered job."""

    before: str | None = Field(default=None, max_length=40, description="The `next` of the previous page.")
    limit: Limit = PAGE_DEFAULT


class Backfills(OneEntry):
    """Which backfills of which registered job."""

    before: Before = None
    limit: Limit = PAGE_DEFAULT


class OneBackfill(Arguments):
    """Which backfill."""

    backfill_id: Annotated[str, Field(pattern=_ID, description="The backfill's id: digits, as a string.")]


class PlanBackfill(OneEntry):
    """Which past times of which registered job."""

    start: str = Field(description="A day (midnight in the entry's zone), or a time with its offset.")
    end: str = Field(description="The end of the range, in the same form; it is not included.")
    force: bool = Field(default=False, description="Assume that times that have run before run again.")
    failed: bool = Field(default=False, description="Assume that only times whose last run failed run again.")


class Metrics(Arguments):
    """Which metrics."""

    contains: str | None = Field(default=None, max_length=200, description="Only metrics whose names contain this.")


# ---------------------------------------------------------------- changes


class ClearTask(request_models.Clear):
    """Which task, and how."""

    task_id: TaskId


class RetryJob(request_models.Clear):
    """Which job, and how."""

    job_id: JobId


class RunEntry(request_models.RunRegistered):
    """Which registered job, and how it is run."""

    name: EntryName


class CreateBackfill(request_models.CreateBackfill):
    """Which past times of which registered job, and how they are run."""

    name: EntryName


class RegisterEntry(request_models.RegisterJob):
    """A registered job, as it is to be."""

    name: EntryName


class OneWorker(Arguments):
    """Which worker."""

    worker_id: WorkerId
