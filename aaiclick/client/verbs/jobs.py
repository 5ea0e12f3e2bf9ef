"""Jobs: submitting, listing, reading, cancelling and retrying them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any

from aaiclick.client.calls import part
from aaiclick.client.verbs.asking import Asking, Id, given

if TYPE_CHECKING:
    from aaiclick.representations.graphs import GraphAnswer, GraphTask, GraphTaskPage
    from aaiclick.representations.jobs import (
        Cancelled,
        ExactResult,
        JobAnswer,
        JobErrors,
        JobPage,
        ResultAnswer,
        StatsAnswer,
    )
    from aaiclick.representations.tasks import Cleared


class JobVerbs(Asking):
    """Methods about jobs."""

    async def submit_job(
        self,
        name: str,
        entrypoint: str,
        kwargs: Mapping[str, object] | None = None,
        *,
        key: str | None = None,
        priority: int | None = None,
        timeout_s: float | None = None,
        preservation_mode: str | None = None,
        cache_mode: str | None = None,
    ) -> JobAnswer:
        """Submit a run of a function. With a key, the job that this key has already is returned.

        `cache_mode`: with "refresh" all bodies run and their results are remembered anew; "off" remembers nothing.

        Without a key, a request whose answer is lost is not repeated: ServerUnreachable then leaves open whether there
        is a job.
        """
        options = {"key": key, "priority": priority, "timeout_s": timeout_s}
        options |= {"preservation_mode": preservation_mode, "cache_mode": cache_mode}
        body = {"name": name, "entrypoint": entrypoint, "kwargs": dict(kwargs or {})} | given(options)
        found: JobAnswer = await self._post("/jobs", body, repeatable=key is not None)
        return found

    async def run_registered_job(
        self,
        name: str,
        kwargs: Mapping[str, object] | None = None,
        *,
        key: str | None = None,
        priority: int | None = None,
        timeout_s: float | None = None,
        preservation_mode: str | None = None,
        cache_mode: str | None = None,
    ) -> JobAnswer:
        """Run a registered job now. With a key, the job that this key has already is returned."""
        options = {"key": key, "priority": priority, "timeout_s": timeout_s}
        options |= {"preservation_mode": preservation_mode, "cache_mode": cache_mode}
        body = {"kwargs": dict(kwargs or {})} | given(options)
        path = f"/registered-jobs/{part(name)}/run"
        found: JobAnswer = await self._post(path, body, repeatable=key is not None)
        return found

    async def get_job(self, job_id: Id) -> JobAnswer:
        """Return a job; raise NotFound."""
        found: JobAnswer = await self._get(f"/jobs/{part(job_id)}")
        return found

    async def list_jobs(
        self,
        *,
        status: str | None = None,
        name_like: str | None = None,
        before: Id | None = None,
        limit: int | None = None,
        total: bool | None = None,
    ) -> JobPage:
        """Return a page of jobs, newest first. `before` is the `next` of the page before; `total` counts all."""
        asked = {"status": status, "name_like": name_like, "before": before, "limit": limit, "total": total}
        found: JobPage = await self._get("/jobs", **asked)
        return found

    async def iter_jobs(
        self, *, status: str | None = None, name_like: str | None = None
    ) -> AsyncGenerator[JobAnswer, None]:
        """Yield all jobs, newest first, page by page."""
        before: str | None = None
        while True:
            page = await self.list_jobs(status=status, name_like=name_like, before=before)
            for job in page["jobs"]:
                yield job
            if (before := page["next"]) is None:
                return

    async def get_job_errors(self, job_id: Id) -> JobErrors:
        """Return where the tasks of a job failed, and the data expectations that were not met."""
        found: JobErrors = await self._get(f"/jobs/{part(job_id)}/errors")
        return found

    async def get_job_result(self, job_id: Id) -> Any:
        """Return what the workflow returned, as the Python value that it was; raise Conflict unless it completed.

        Values of classes are made of the classes of this process, whose modules are imported. An Object is returned
        as a reference, a dict with its table; see `read_result`.
        """
        from aaiclick.orchestration.rules.values.encoding import decode_value  # here, to keep start-up light

        told: ExactResult = await self._get(f"/jobs/{part(job_id)}/result", exact=True)
        return decode_value(json.dumps(told["encoded"]), _reference)

    async def show_job_result(self, job_id: Id) -> ResultAnswer:
        """Return what the workflow returned for display: as JSON, shortened, with secrets masked."""
        found: ResultAnswer = await self._get(f"/jobs/{part(job_id)}/result")
        return found

    async def cancel_job(self, job_id: Id) -> Cancelled:
        """Cancel a job and all of its tasks that have not ended."""
        found: Cancelled = await self._post(f"/jobs/{part(job_id)}/cancel")
        return found

    async def retry_job(self, job_id: Id, *, dry_run: bool = False, upstream: bool = False) -> Cleared:
        """Run the failed tasks of a job again, with everything downstream of them."""
        body = {"dry_run": dry_run, "upstream": upstream}
        found: Cleared = await self._post(f"/jobs/{part(job_id)}/retry", body, repeatable=dry_run)
        return found

    async def get_job_stats(self, job_id: Id) -> StatsAnswer:
        """Return statistics of a job."""
        found: StatsAnswer = await self._get(f"/jobs/{part(job_id)}/stats")
        return found

    async def get_job_graph(self, job_id: Id) -> GraphAnswer:
        """Return a job's whole graph."""
        found: GraphAnswer = await self._get(f"/jobs/{part(job_id)}/graph")
        return found

    async def list_job_tasks(
        self, job_id: Id, *, status: str | None = None, after: Id | None = None, limit: int | None = None
    ) -> GraphTaskPage:
        """Return a page of a job's tasks, in the order of creation. `after` is the `next` of the page before."""
        found: GraphTaskPage = await self._get(f"/jobs/{part(job_id)}/tasks", status=status, after=after, limit=limit)
        return found

    async def iter_job_tasks(self, job_id: Id, *, status: str | None = None) -> AsyncGenerator[GraphTask, None]:
        """Yield all tasks of a job, in the order of creation, page by page."""
        after: str | None = None
        while True:
            page = await self.list_job_tasks(job_id, status=status, after=after, limit=1000)
            for task in page["tasks"]:
                yield task
            if (after := page["next"]) is None:
                return


def _reference(kind: str, payload: object) -> object:
    """Return what stands for an Object: the dict that the front door returns outside of a `data_context`."""
    if isinstance(payload, dict):
        return {"object_type": kind, **{name: value for name, value in payload.items() if name != "schema"}}
    return payload
