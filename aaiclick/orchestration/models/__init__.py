"""The objects that users get and pass: jobs, tasks, groups, and rows about them. No database library is imported."""

from aaiclick.orchestration.models.cached import CacheAnswer, CacheEntry, CacheKey
from aaiclick.orchestration.models.claim import Claim, Done, Failure, Held, Orders, Receipt, Report, Stop
from aaiclick.orchestration.models.group import Group
from aaiclick.orchestration.models.job import Job
from aaiclick.orchestration.models.records import Backfill, Dependency, Event, Fire, RegisteredJob, Run, Worker
from aaiclick.orchestration.models.task import Task
from aaiclick.orchestration.rules.states import JobStatus, PreservationMode, RunType, TaskStatus, WorkerStatus

__all__ = [
    "Backfill",
    "CacheAnswer",
    "CacheEntry",
    "CacheKey",
    "Claim",
    "Dependency",
    "Done",
    "Event",
    "Failure",
    "Fire",
    "Group",
    "Held",
    "Job",
    "JobStatus",
    "Orders",
    "PreservationMode",
    "Receipt",
    "RegisteredJob",
    "Report",
    "Run",
    "RunType",
    "Stop",
    "Task",
    "TaskStatus",
    "Worker",
    "WorkerStatus",
]
