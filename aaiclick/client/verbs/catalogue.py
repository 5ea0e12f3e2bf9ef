"""Registered jobs, their schedules and backfills."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from typing_extensions import TypedDict

from aaiclick.client.calls import part
from aaiclick.client.verbs.asking import Asking, Id, given

if TYPE_CHECKING:
    from aaiclick.representations.jobs import Cancelled
    from aaiclick.representations.schedules.backfills import BackfillAnswer, BackfillPage, BackfillPlan
    from aaiclick.representations.schedules.fires import FirePage
    from aaiclick.representations.schedules.registered_jobs import RegisteredJobAnswer, RegisteredJobList


class EntryOptions(TypedDict, total=False):
    """What a registered job may say besides its function; see `aaiclick.register_job`."""

    schedule: str | None
    default_kwargs: Mapping[str, Any] | None
    preservation_mode: str | None
    enabled: bool | None
    timezone: str | None
    missed_runs: str | None
    missed_max: int | None
    overlap: str | None
    time_kwarg: str | None
    priority: int | None
    timeout_s: float | None
    fail_fast: bool | None
    keep_last: int | None
    placement: Mapping[str, Any] | str | None
    resources: Mapping[str, float] | None


class CatalogueVerbs(Asking):
    """Methods about registered jobs."""

    async def list_registered_jobs(self, *, enabled_only: bool = False) -> RegisteredJobList:
        """Return the registered jobs, by name."""
        found: RegisteredJobList = await self._get("/registered-jobs", enabled_only=enabled_only)
        return found

    async def get_registered_job(self, name: str) -> RegisteredJobAnswer:
        """Return a registered job; raise NotFound."""
        found: RegisteredJobAnswer = await self._get(f"/registered-jobs/{part(name)}")
        return found

    async def register_job(self, name: str, entrypoint: str, **options: Unpack[EntryOptions]) -> RegisteredJobAnswer:
        """Create or replace a registered job."""
        body = {"entrypoint": entrypoint} | given(options)
        found: RegisteredJobAnswer = await self._put(f"/registered-jobs/{part(name)}", body)
        return found

    async def enable_job(self, name: str) -> RegisteredJobAnswer:
        """Enable a registered job: it fires from now on."""
        found: RegisteredJobAnswer = await self._post(f"/registered-jobs/{part(name)}/enable")
        return found

    async def disable_job(self, name: str) -> RegisteredJobAnswer:
        """Disable a registered job: it no longer fires."""
        found: RegisteredJobAnswer = await self._post(f"/registered-jobs/{part(name)}/disable")
        return found

    async def list_fires(self, name: str, *, before: str | None = None, limit: int | None = None) -> FirePage:
        """Return a page of the times of a registered job with their outcomes, latest first."""
        found: FirePage = await self._get(f"/registered-jobs/{part(name)}/fires", before=before, limit=limit)
        return found

    async def list_backfills(self, name: str, *, before: Id | None = None, limit: int | None = None) -> BackfillPage:
        """Return a page of the backfills of a registered job, newest first."""
        found: BackfillPage = await self._get(f"/registered-jobs/{part(name)}/backfills", before=before, limit=limit)
        return found

    async def plan_backfill(
        self, name: str, start: str, end: str, *, force: bool = False, failed: bool = False
    ) -> BackfillPlan:
        """Return which times of a schedule a backfill would run; changes nothing."""
        body = {"start": start, "end": end, "force": force, "failed": failed, "dry_run": True}
        found: BackfillPlan = await self._post(f"/registered-jobs/{part(name)}/backfills", body, repeatable=True)
        return found

    async def create_backfill(
        self,
        name: str,
        start: str,
        end: str,
        *,
        parallel: int = 1,
        kwargs: Mapping[str, object] | None = None,
        force: bool = False,
        failed: bool = False,
    ) -> BackfillAnswer:
        """Run past times of a schedule, from a day or time on, up to another that is not included."""
        body = {"start": start, "end": end, "parallel": parallel, "force": force, "failed": failed}
        whole = body | {"kwargs": dict(kwargs or {})}
        found: BackfillAnswer = await self._post(f"/registered-jobs/{part(name)}/backfills", whole)
        return found

    async def get_backfill(self, backfill_id: Id) -> BackfillAnswer:
        """Return a backfill, with its times by outcome; raise NotFound."""
        found: BackfillAnswer = await self._get(f"/backfills/{part(backfill_id)}")
        return found

    async def cancel_backfill(self, backfill_id: Id) -> Cancelled:
        """Start no more runs of a backfill; runs that have begun continue."""
        found: Cancelled = await self._post(f"/backfills/{part(backfill_id)}/cancel")
        return found
