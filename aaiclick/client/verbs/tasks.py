"""Tasks, their attempts and logs, and dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aaiclick.client.calls import part
from aaiclick.client.verbs.asking import Asking, Id

if TYPE_CHECKING:
    from aaiclick.representations.dead_letters import DeadLetterPage
    from aaiclick.representations.pending import PendingAnswer
    from aaiclick.representations.tasks import Cleared, RunList, TaskDetail, TaskPage


class LogPart(NamedTuple):
    """Some bytes of a log, and the current size of the whole log."""

    data: bytes
    size: int


class TaskVerbs(Asking):
    """Methods about tasks."""

    async def list_tasks(
        self,
        *,
        status: str | None = None,
        name_like: str | None = None,
        node: str | None = None,
        lane: int | None = None,
        blocked: str | None = None,
        before: Id | None = None,
        limit: int | None = None,
    ) -> TaskPage:
        """Return a page of tasks of all jobs, newest first. `before` is the `next` of the page before.

        `blocked="placement"`: only ready tasks that no live node may run. A page may have fewer tasks than `limit` and
        yet a next one.
        """
        found: TaskPage = await self._get(
            "/tasks",
            status=status,
            name_like=name_like,
            node=node,
            lane=lane,
            blocked=blocked,
            before=before,
            limit=limit,
        )
        return found

    async def get_task(self, task_id: Id) -> TaskDetail:
        """Return a task, and where it failed; raise NotFound."""
        found: TaskDetail = await self._get(f"/tasks/{part(task_id)}")
        return found

    async def list_task_runs(self, task_id: Id) -> RunList:
        """Return the ended attempts of a task, oldest first."""
        found: RunList = await self._get(f"/tasks/{part(task_id)}/runs")
        return found

    async def why_pending(self, task_id: Id) -> PendingAnswer:
        """Return why a task is pending: what it waits for, or what holds it back."""
        found: PendingAnswer = await self._get(f"/tasks/{part(task_id)}/pending")
        return found

    async def clear_task(self, task_id: Id, *, dry_run: bool = False, upstream: bool = False) -> Cleared:
        """Run a task again, with everything downstream of it."""
        body = {"dry_run": dry_run, "upstream": upstream}
        found: Cleared = await self._post(f"/tasks/{part(task_id)}/clear", body, repeatable=dry_run)
        return found

    async def read_log(
        self, task_id: Id, *, epoch: int | None = None, offset: int = 0, limit: int = 1_000_000
    ) -> LogPart:
        """Return bytes of a task's log, of its newest attempt or another; raise NotFound if there is no log yet.

        A negative `offset` counts from the end.
        """
        asked = {"epoch": epoch, "offset": offset, "limit": limit}
        found = await self._calls.ask("GET", f"/tasks/{part(task_id)}/logs", asked)
        return LogPart(found.body, int(found.headers.get("x-log-size", len(found.body))))

    async def list_dead_letters(
        self, *, job_id: Id | None = None, before: str | None = None, limit: int | None = None
    ) -> DeadLetterPage:
        """Return a page of the tasks that failed and are not tried again, of one job or all."""
        found: DeadLetterPage = await self._get("/dead-letters", job_id=job_id, before=before, limit=limit)
        return found

    async def replay_dead_letter(self, task_id: Id) -> Cleared:
        """Run a dead letter again, with everything downstream of it."""
        found: Cleared = await self._post(f"/dead-letters/{part(task_id)}/replay")
        return found
