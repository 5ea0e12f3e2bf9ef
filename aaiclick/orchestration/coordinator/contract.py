"""The few verbs with which execution speaks to the state. It never sees the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from aaiclick.orchestration.models import Claim, Job, Receipt, Report, Worker
from aaiclick.orchestration.models.submission import Submission


class Coordinator(Protocol):
    """What a worker, and `job_test`, may ask."""

    async def submit(self, submission: Submission) -> Job:
        """Store a graph: all of it, or nothing."""

    async def register(self, *, hostname: str, pid: int, name: str | None = None) -> Worker:
        """Begin a session."""

    async def beat(self, worker_id: int) -> bool:
        """Renew the session; False if it is over."""

    async def deregister(self, worker_id: int) -> bool:
        """End the session."""

    async def claim(self, worker_id: int, *, limit: int, placement: int = 0) -> list[Claim]:
        """Take up to `limit` tasks that are ready, in order."""

    async def report(self, worker_id: int, reports: Sequence[Report]) -> Receipt:
        """Say what runs came to; stale reports change nothing and are not among those accepted."""

    async def release(self, worker_id: int, claims: Sequence[Claim]) -> set[int]:
        """Give tasks back; gives the ids of those that were still held."""

    async def reserve(self, job_id: int, placement: int) -> None:
        """Keep a job for whoever claims from this placement."""

    async def reconcile(self, job_id: int | None = None) -> float | None:
        """Promote what is due, work off what was postponed; gives the seconds until something is due again."""

    async def job(self, job_id: int) -> Job | None:
        """The job as it is now."""

    async def cancel(self, job_id: int) -> bool:
        """End a job with all that has not ended of it."""
