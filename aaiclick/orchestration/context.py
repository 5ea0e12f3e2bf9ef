"""Contexts: `apply` commits nodes to a job, and `async with` keeps one connection open for all calls inside."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from aaiclick.errors import NoContext
from aaiclick.orchestration.checks import check_entrypoints, refuse_during_import
from aaiclick.orchestration.connections import front_door, kept_connection
from aaiclick.orchestration.gathering import Staging, around, gather, staging_around
from aaiclick.orchestration.models import Group, Task
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.rules.validation import check_id, shorten
from aaiclick.orchestration.submitting.submitted_objects import submit_given

if TYPE_CHECKING:
    from aaiclick.data.context import Context as DataContext
    from aaiclick.data.objects import Object
    from aaiclick.data.tables.table_names import Scope
    from aaiclick.data.typing.schema import Schema

T = TypeVar("T")


class _Entered(NamedTuple):
    by: asyncio.Task[Any] | None
    connection: AbstractAsyncContextManager[Any]
    around: Context | Staging | None


class _OwnData:
    """The `data_context` that a Context opens when `create_object` is called outside of any other."""

    def __init__(self) -> None:
        self._opening = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._context: DataContext | None = None

    async def context(self) -> DataContext:
        from aaiclick.data.context import opened_context  # here, to keep start-up light

        async with self._opening:
            if self._context is None:
                self._context = await self._stack.enter_async_context(opened_context())
            return self._context

    async def close(self) -> None:
        self._context = None
        await self._stack.aclose()


class Context:
    """A job's context: `apply` commits tasks, groups and dependencies to the job.

    `async with` is optional; it keeps one connection open for all calls inside.
    """

    def __init__(self, job_id: int | None = None) -> None:
        self.job_id = None if job_id is None else check_id(job_id, "job id")
        self._entered: list[_Entered] = []
        self._own_data: _OwnData | None = None

    async def __aenter__(self) -> Context:
        connection: AbstractAsyncContextManager[Any] = (
            nullcontext() if self._staging() is not None else kept_connection()
        )
        await connection.__aenter__()
        self._own_data = self._own_data or _OwnData()
        self._entered.append(_Entered(asyncio.current_task(), connection, around.get()))
        around.set(self)
        return self

    async def __aexit__(self, *error: Any) -> None:
        """Leave the block that this asyncio task entered last; if it entered none (a fixture), the last of all."""
        mine = [entered for entered in self._entered if entered.by is asyncio.current_task()]
        last = (mine or self._entered)[-1]
        self._entered.remove(last)
        around.set(last.around)
        try:
            if not self._entered and self._own_data is not None:
                await self._own_data.close()
        finally:
            await last.connection.__aexit__(*error)

    async def apply(self, items: T) -> T:
        """Commit nodes with their dependencies, and the unapplied nodes they need, in one transaction; return `items`.

        An error stores nothing. It is raised for cycles, nodes of other jobs, unknown ids, and functions that do not
        take their arguments.

        In a running task, nodes applied to its own job are stored when the task completes, and not if it fails.
        """
        refuse_during_import("apply(…)")
        if self.job_id is None:
            raise NoContext(call="apply", hint="Name the job: Context(job_id=job.id).apply(…)")
        nodes = _as_nodes(items)
        if (staging := self._staging()) is not None:
            staging.stage(nodes)
            return items
        submission = gather(self.job_id, nodes)
        if submission.tasks or submission.groups or submission.edges:
            check_entrypoints(submission.tasks)
            async with front_door() as coordinator:
                await submit_given(coordinator, submission)
        return items

    def _staging(self) -> Staging | None:
        """Return the staging of the surrounding run, if this is a context of the run's job; else None."""
        staging = staging_around()
        return staging if staging is not None and staging.job_id == self.job_id else None

    async def create_object(
        self,
        schema: Schema | Mapping[str, object],
        *,
        name: str | None = None,
        scope: Scope = "global",
        order: bool = False,
    ) -> Object:
        """Make an empty Object with these columns, in the surrounding `data_context` or in that of the run.

        With neither, an entered context opens one, which ends with it: its Objects without a name are dropped then.
        """
        from aaiclick.data.context import current_context, is_context_around  # here, to keep start-up light

        own = self._own_data if self._entered and not is_context_around() else None
        data = await (current_context() if own is None else own.context())
        return await data.create_object(schema, name=name, scope=scope, order=order)


def orch_context(job_id: int | None = None) -> Context:
    """Make a context. `async with orch_context():` keeps one connection open for all calls inside.

    In a running task it is bound to the task's own job, unless `job_id` names another.
    """
    staging = staging_around()
    return Context(staging.job_id if job_id is None and staging is not None else job_id)


def get_current_context() -> Context:
    """Return the context entered last, or that of the running task's job; raise NoContext if there is none."""
    context = around.get()
    if isinstance(context, Staging):
        context.context = context.context or Context(context.job_id)
        return context.context
    if context is None:
        raise NoContext(call="get_current_context", hint="Enter one with: async with orch_context(job_id): …")
    return context


def get_current_job_id() -> int:
    """Return the job id of the current context; raise NoContext if there is none or it has no job."""
    job_id = get_current_context().job_id
    if job_id is None:
        raise NoContext(call="get_current_job_id", hint="The enclosing context is not bound to a job.")
    return job_id


def _as_nodes(items: object) -> list[Node]:
    given: list[Any] = list(items) if isinstance(items, list | tuple) else [items]
    for item in given:
        if not isinstance(item, Task | Group):
            raise TypeError(
                f"apply takes Tasks and Groups, or a list of them, not {type(item).__name__}: {shorten(item)}"
            )
    return given
