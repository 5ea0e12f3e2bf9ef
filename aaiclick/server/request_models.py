"""Everything that the server is asked with: fields that are not known are refused, and all that is wrong is listed."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from aaiclick.orchestration.rules.validation import LIMIT_DEFAULT, LIMIT_MAX

IdText = Annotated[str, Field(pattern="^[0-9]{1,19}$")]
IdPath = Annotated[str, Path(pattern="^[0-9]{1,19}$", examples=["380467616543174656"])]
Limit = Annotated[int, Field(ge=1, le=LIMIT_MAX, description="Return at most this many.")]


MEMBERS_MAX = 50
"""More than any form has. Each that is not known would be an error of its own."""

ARGUMENTS_MAX = 1000
"""Arguments of one job, by name; how much is in them is bounded by their bytes."""


class Form(BaseModel):
    """What is asked with: what is not known is refused, and of too many at once no more is looked at."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _few(cls, given: Any) -> Any:
        if isinstance(given, dict) and len(given) > MEMBERS_MAX:
            rule = "{number} fields are given, allowed are {most} at most"
            raise PydanticCustomError("too_many_fields", rule, {"number": len(given), "most": MEMBERS_MAX})
        return given


class _Asked(Form):
    """In the address, where everything is a text."""


class _Body(Form):
    """In JSON, where nothing is taken for what it is not."""

    model_config = ConfigDict(strict=True)


Kwargs = Annotated[dict[str, Any], Field(max_length=ARGUMENTS_MAX)]


class JobsQuery(_Asked):
    """Which jobs."""

    status: str | None = Field(default=None, description="Only jobs with this status.")
    name_like: str | None = Field(
        default=None, description="Only names that match this pattern: % stands for anything, _ for one character."
    )
    before: IdText | None = Field(default=None, description="The `next` of the previous page.")
    limit: Limit = LIMIT_DEFAULT
    total: bool = Field(default=False, description="Also count all jobs that match.")


class ResultQuery(_Asked):
    """In which form."""

    exact: bool = Field(default=False, description="In the encoding in which values travel exactly, as clients read.")


class JobTasksQuery(_Asked):
    """Which tasks of a job."""

    status: str | None = Field(default=None, description="Only tasks with this status.")
    after: IdText | None = Field(default=None, description="The `next` of the previous page.")
    limit: Limit = LIMIT_DEFAULT


class TasksQuery(_Asked):
    """Which tasks."""

    status: str | None = Field(default=None, description="Only tasks of this status.")
    name_like: str | None = Field(
        default=None, description="Only names like this: % stands for anything, _ for one character."
    )
    node: str | None = Field(default=None, description="Only tasks that a node has, or had last, by its name.")
    lane: int | None = Field(default=None, ge=0, lt=2**31, description="Only tasks of this lane.")
    blocked: str | None = Field(default=None, description="placement: only ready tasks that no live node may run.")
    before: IdText | None = Field(default=None, description="The `next` of the page before.")
    limit: Limit = LIMIT_DEFAULT


class WorkersQuery(_Asked):
    """Which workers."""

    status: str | None = Field(default=None, description="Only workers with this status.")
    before: IdText | None = Field(default=None, description="The `next` of the previous page.")
    limit: Limit = LIMIT_DEFAULT


class NodesQuery(_Asked):
    """Which nodes."""

    state: str | None = Field(default=None, description="Only nodes of this state: open, cordoned or draining.")
    status: str | None = Field(default=None, description="Only nodes of this status: healthy, stale or dead.")
    pool: str | None = Field(default=None, description="Only nodes of this pool.")
    after: str | None = Field(default=None, max_length=200, description="The `next` of the page before.")
    limit: Limit = LIMIT_DEFAULT


class ResourcesQuery(_Asked):
    """Which resources."""

    name: str | None = Field(default=None, max_length=200, description="Only this resource.")
    node: str | None = Field(default=None, max_length=200, description="Only what this node has.")
    after: str | None = Field(default=None, max_length=250, description="The `next` of the page before.")
    limit: Limit = LIMIT_DEFAULT


class SetResource(_Body):
    """How much there is."""

    amount: float = Field(ge=0, le=10**12, description="For all nodes together, with three decimals at most.")


class RemoveNode(_Body):
    """How to remove a node."""

    force: bool = Field(default=False, description="Also if its workers are alive: only for one that is gone.")


class PageQuery(_Asked):
    """Which page."""

    before: IdText | None = Field(default=None, description="The `next` of the previous page.")
    limit: Limit = LIMIT_DEFAULT


class FiresQuery(_Asked):
    """Which page."""

    before: str | None = Field(default=None, max_length=40, description="The `next` of the previous page.")
    limit: Limit = LIMIT_DEFAULT


class DeadLettersQuery(_Asked):
    """Which page."""

    job_id: IdText | None = Field(default=None, description="Only tasks of this job.")
    before: str | None = Field(
        default=None, pattern="^[0-9]{1,19}-[0-9]{1,19}$", description="The `next` of the previous page."
    )
    limit: Limit = LIMIT_DEFAULT


class CacheQuery(_Asked):
    """Which remembered results."""

    entrypoint: str | None = Field(default=None, max_length=500, description="Only those of this function.")
    before: IdText | None = Field(default=None, description="The `next` of the page before.")
    limit: Limit = LIMIT_DEFAULT


class EventsQuery(_Asked):
    """Which events."""

    after: IdText | None = Field(default=None, description="The id of the last event seen; 0 for all events.")
    job_id: IdText | None = Field(default=None, description="Only events of this job.")
    limit: Limit = LIMIT_DEFAULT


class StreamQuery(_Asked):
    """Which events."""

    after: IdText | None = Field(default=None, description="Begin after this event; by default with new events.")
    job_id: IdText | None = Field(default=None, description="Only events of this job.")


class LogsQuery(_Asked):
    """Which part of which log."""

    epoch: int | None = Field(default=None, ge=0, lt=2**31, description="The attempt; by default the newest.")
    offset: int = Field(
        default=0, gt=-(2**63), lt=2**63, description="The first byte; a negative number counts from the end."
    )
    limit: int = Field(default=1_000_000, ge=1, le=1_000_000, description="Return at most this many bytes.")
    follow: bool = Field(default=False, description="Follow the log until the task ends, without a limit.")


class RowsQuery(_Asked):
    """How many rows."""

    limit: Annotated[int, Field(ge=1, le=LIMIT_MAX)] = LIMIT_DEFAULT


class Where(_Body):
    """Rows whose column compares so to a value."""

    column: str
    operator: str = Field(default="=", description="One of = != < <= > >=")
    value: str | int | float | bool


class OrderBy(_Body):
    """Rows in the order of a column."""

    column: str
    descending: bool = False


class QueryObject(_Body):
    """Which rows and columns of an Object."""

    columns: list[str] = Field(default_factory=list, max_length=1000, description="By default all.")
    where: list[Where] = Field(default_factory=list, max_length=50, description="Conditions that all must hold.")
    order_by: list[OrderBy] = Field(default_factory=list, max_length=50)
    limit: Limit = LIMIT_DEFAULT


class RegisteredQuery(_Asked):
    """Which entries."""

    enabled_only: bool = False


class Clear(_Body):
    """How to clear."""

    dry_run: bool = Field(default=False, description="Change nothing, and return the tasks that would run again.")
    upstream: bool = Field(
        default=False, description="Also run again the tasks that made needed tables which are gone."
    )


class ClearCache(_Body):
    """Which remembered results to remove; all, unless told which."""

    entrypoint: str | None = Field(default=None, max_length=500, description="Only those of this function.")
    entry_id: IdText | None = Field(default=None, description="Only this entry.")


CacheModeText = Annotated[
    str | None,
    Field(description="`refresh` runs all bodies and remembers their results anew, `off` remembers nothing."),
]


class SubmitJob(_Body):
    """A job to run now."""

    name: str
    entrypoint: str = Field(description="The importable name of a function marked @task or @job.")
    kwargs: Kwargs = Field(default_factory=dict, description="The arguments: plain data, never references.")
    key: str | None = Field(default=None, description="A repeated key returns the first job again.")
    priority: int | None = None
    timeout_s: float | None = None
    preservation_mode: str | None = None
    cache_mode: CacheModeText = None


class RunRegistered(_Body):
    """A run of an entry, now."""

    kwargs: Kwargs = Field(default_factory=dict, description="They override the registered job's defaults.")
    key: str | None = Field(default=None, description="A repeated key returns the first job again.")
    priority: int | None = None
    timeout_s: float | None = None
    preservation_mode: str | None = None
    cache_mode: CacheModeText = None


class CreateBackfill(_Body):
    """Which past times of an entry to run."""

    start: str = Field(description="A day (midnight in the entry's zone), or a time with its offset.")
    end: str = Field(description="The end of the range, in the same form; it is not included.")
    parallel: int = Field(default=1, description="How many runs go on at the same time.")
    kwargs: dict[str, Any] = Field(default_factory=dict, description="They override the registered job's defaults.")
    force: bool = Field(default=False, description="Also run times that have run before.")
    failed: bool = Field(default=False, description="Only run times whose last run failed.")
    dry_run: bool = Field(default=False, description="Change nothing, and return the times that would run.")


class RegisterJob(_Body):
    """An entry of the catalogue, as it is to be."""

    entrypoint: str = Field(description="The importable name of a function marked @task or @job.")
    schedule: str | None = None
    default_kwargs: Kwargs = Field(default_factory=dict)
    preservation_mode: str | None = None
    enabled: bool | None = None
    timezone: str | None = None
    missed_runs: str | None = None
    missed_max: int | None = None
    overlap: str | None = None
    time_kwarg: str | None = Field(
        default=None,
        description="The parameter that receives the time of each run; two, as in start,end, receive its interval.",
    )
    priority: int | None = None
    timeout_s: float | None = None
    fail_fast: bool | None = None
    keep_last: int | None = Field(
        default=None,
        description="Keep this many ended runs, however old, and delete all others; by default runs are kept by age.",
    )
    placement: dict[str, Any] | str | None = Field(
        default=None, description='Where its tasks may run: "memory_gb >= 32", or the fields of PlacementConstraints.'
    )
    resources: dict[str, float] | None = Field(
        default=None, description='What each of its tasks needs: {"gpu": 1, "licence:abaqus": 1}.'
    )
