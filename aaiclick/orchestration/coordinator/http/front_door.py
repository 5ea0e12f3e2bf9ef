"""The front door of a process without a database: what a body may ask a server, in the name of its run."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from aaiclick.orchestration.coordinator.http.acting import acting_run
from aaiclick.orchestration.coordinator.http.calls import LONG_S_MAX, Calls
from aaiclick.orchestration.coordinator.http.protocol import JobTables, OfJob, SentJob, Submit, Tables
from aaiclick.orchestration.models import Job
from aaiclick.orchestration.models.job_result import StoredResult
from aaiclick.orchestration.models.sent_submission import SentSubmission
from aaiclick.orchestration.models.submission import Submission


class HttpFrontDoor:
    """Implements `FrontDoor` on a server."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    async def submit(self, submission: Submission) -> Job:
        submission.refuse_exposed()
        asked = Submit(graph=SentSubmission.of(submission), run=acting_run())
        job = (await self.calls.ask("submit", asked, SentJob, within_s=LONG_S_MAX)).job()
        submission.hand_over()
        return job

    async def tables_of_others(self, job_id: int, tables: Collection[str]) -> set[str]:
        asked = JobTables(job_id=job_id, tables=list(tables), run=acting_run())
        return await self.calls.ask("tables_of_others", asked, set[str])

    async def register_tables(self, job_id: int, tables: Sequence[str], mode: str | None) -> str:
        asked = JobTables(job_id=job_id, tables=list(tables), mode=mode, run=acting_run())
        return await self.calls.ask("register_tables", asked, str)

    async def leave_tables(self, tables: Sequence[str]) -> None:
        await self.calls.ask("leave_tables", Tables(tables=list(tables), run=acting_run()), type(None))

    async def job(self, job_id: int) -> Job | None:
        found: SentJob | None = await self.calls.ask(
            "job",
            OfJob(job_id=job_id, run=acting_run()),
            SentJob | None,  # type: ignore[arg-type]
        )
        return None if found is None else found.job()

    async def result_of(self, job_id: int) -> StoredResult:
        return await self.calls.ask("result_of", OfJob(job_id=job_id, run=acting_run()), StoredResult)
