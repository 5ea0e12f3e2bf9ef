"""The way to the state: an open connection, and graphs that are applied to a job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from aaiclick.backend import get_db_url
from aaiclick.errors import CrossJobDependency, NoContext, NotYetThere, RunningLoop, TooManyTasks
from aaiclick.orchestration.bus import open_bus
from aaiclick.orchestration.checks import check_entrypoints, refuse_during_import
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.given import submit_given
from aaiclick.orchestration.models import Group, Task
from aaiclick.orchestration.models.node import Edge, Node, collector, current_group
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.names import check_id, shorten
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.machine_ids import provide_ids

if TYPE_CHECKING:
    from aaiclick.data.context import Context as DataContext
    from aaiclick.data.names import Scope
    from aaiclick.data.objects import Object
    from aaiclick.data.schema import Schema

T = TypeVar("T")


class _Open(NamedTuple):
    loop: asyncio.AbstractEventLoop
    coordinator: DirectCoordinator


_open: ContextVar[_Open | None] = ContextVar("aaiclick_open", default=None)
_current: ContextVar[Context | None] = ContextVar("aaiclick_context", default=None)


@asynccontextmanager
async def connected() -> AsyncIterator[DirectCoordinator]:
    """The coordinator of the context around, or one of its own for as long as the block."""
    around = _open.get()
    if around is not None and around.loop is asyncio.get_running_loop():
        yield around.coordinator
        return
    database = await Database.open(get_db_url())
    bus = open_bus(database.url)
    coordinator = DirectCoordinator(database, bus=bus)
    _open.set(_Open(asyncio.get_running_loop(), coordinator))
    try:
        await provide_ids(database)
        yield coordinator
    finally:
        # not by token: a fixture may be left in another context than the one it was entered in
        _open.set(around)
        await bus.flush()
        await bus.close()
        await database.close()


class _Entered(NamedTuple):
    by: asyncio.Task[Any] | None
    connection: AbstractAsyncContextManager[Any]
    around: Context | None


class _OwnData:
    """The data context that a Context opens for itself, when the first Object is made and none is around."""

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
    """A job's context: `apply` commits tasks, groups and dependencies to it.

    Use it as it is, or with `async with`, which keeps one connection open for all that happens inside.
    """

    def __init__(self, job_id: int | None = None) -> None:
        self.job_id = None if job_id is None else check_id(job_id, "job id")
        self._entered: list[_Entered] = []
        self._own_data: _OwnData | None = None

    async def __aenter__(self) -> Context:
        connection: AbstractAsyncContextManager[Any] = nullcontext() if self._staging() is not None else connected()
        await connection.__aenter__()
        self._own_data = self._own_data or _OwnData()
        self._entered.append(_Entered(asyncio.current_task(), connection, _current.get()))
        _current.set(self)
        return self

    async def __aexit__(self, *error: Any) -> None:
        """Leave the block that this coroutine entered last; a fixture may be left by another than entered it."""
        mine = [entered for entered in self._entered if entered.by is asyncio.current_task()]
        last = (mine or self._entered)[-1]
        self._entered.remove(last)
        _current.set(last.around)
        try:
            if not self._entered and self._own_data is not None:
                await self._own_data.close()
        finally:
            await last.connection.__aexit__(*error)

    async def apply(self, items: T) -> T:
        """Commit these with their dependencies, and with whatever unapplied they wait for, in one transaction.

        Refused as a whole: cycles, nodes of other jobs, ids that no one holds, functions that do not take what they
        are given. Returns what it was given.

        In a running task, what is applied to its own job appears when the task has completed, and not if it fails.
        """
        refuse_during_import("apply(…)")
        if self.job_id is None:
            raise NoContext(call="apply", hint="Say which job: Context(job_id=job.id).apply(…)")
        nodes = _as_list(items)
        if (staging := self._staging()) is not None:
            staging.stage(nodes)
            return items
        submission = gather(self.job_id, nodes)
        if submission.tasks or submission.groups or submission.edges:
            check_entrypoints(submission.tasks)
            async with connected() as coordinator:
                await submit_given(coordinator, submission)
        return items

    def _staging(self) -> Staging | None:
        """Where the run around gathers what it makes, if this is a context of its job."""
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
        """An empty Object with these columns, in the `data_context` around or in that of the run.

        With neither, this context opens one of its own, which ends with it: what has no name goes then.
        """
        from aaiclick.data.context import current_context, is_context_around  # here, to keep start-up light

        own = self._own_data if self._entered and not is_context_around() else None
        around = await (current_context() if own is None else own.context())
        return await around.create_object(schema, name=name, scope=scope, order=order)


def orch_context(job_id: int | None = None) -> Context:
    """`async with orch_context():` keeps one connection open for all the calls inside.

    In a running task it is bound to the task's own job, unless another is named.
    """
    staging = staging_around()
    return Context(staging.job_id if job_id is None and staging is not None else job_id)


def get_current_context() -> Context:
    """The context around."""
    context = _current.get()
    if context is None:
        raise NoContext(call="get_current_context", hint="Enter one with: async with orch_context(job_id): …")
    return context


def get_current_job_id() -> int:
    """The job of the context around."""
    job_id = get_current_context().job_id
    if job_id is None:
        raise NoContext(call="get_current_job_id", hint="The context around is not bound to a job.")
    return job_id


# ---------------------------------------------------------------- what a running task makes


class Staging(list[Node]):
    """The tasks and groups that a run makes: they are committed with its completion, in the same transaction."""

    def __init__(self, job_id: int, most: int, count_slots: Callable[[], Awaitable[int]] | None = None) -> None:
        super().__init__()
        self.job_id = job_id
        self.most = most
        self._count_slots = count_slots

    async def slots(self) -> int:
        """How many of the tasks that are made here may run at a time, as far as anybody knows."""
        return 1 if self._count_slots is None else await self._count_slots()

    def append(self, node: Node) -> None:
        """One more, if it is not one too many."""
        if len(self) >= self.most:
            raise TooManyTasks(what="One task makes", limit=self.most, setting="AAICLICK_TASK_CHILDREN_MAX")
        super().append(node)

    def stage(self, nodes: Iterable[Node]) -> None:
        """Add those that were made elsewhere, with what they need; refused as a whole, as `apply` does."""
        submission = gather(self.job_id, nodes)
        check_entrypoints(submission.tasks)
        known = {node.id for node in self}
        for node in (*submission.tasks, *submission.groups):
            if node.id not in known:
                self.append(node)

    def forget(self) -> None:
        """The run failed: what it made is never stored, and a body that still has some of it cannot add it later."""
        for node in self:
            if not node.applied:
                node.job_id, node.applied = self.job_id, True
                for edge in (*node.incoming, *node.outgoing):
                    edge.applied = True


def staging_around() -> Staging | None:
    """Where the run around gathers what it makes; None outside of a running task."""
    found = collector.get()
    return found if isinstance(found, Staging) else None


class staged_in:
    """Inside, whatever is made belongs to the run, and the context around is that of its job.

    A class, since each run of a task is inside of one: a generator costs twice as much.
    """

    __slots__ = ("_around", "_gathering", "_group", "_staging")

    def __init__(self, staging: Staging) -> None:
        self._staging = staging

    def __enter__(self) -> None:
        self._gathering = collector.set(self._staging)
        self._group = current_group.set(None)
        self._around = _current.set(Context(self._staging.job_id))

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self._staging.forget()
        collector.reset(self._gathering)
        current_group.reset(self._group)
        _current.reset(self._around)


def refuse_staged(task_id: int) -> None:
    """A running task cannot wait for what it makes: that begins when the task has completed."""
    if any(node.id == task_id for node in staging_around() or ()):
        raise NotYetThere(task_id=task_id)


# ---------------------------------------------------------------- what is submitted


def _as_list(items: object) -> list[Node]:
    given: list[Any] = list(items) if isinstance(items, list | tuple) else [items]
    for item in given:
        if not isinstance(item, Task | Group):
            raise TypeError(
                f"apply takes Tasks and Groups, or a list of them, not {type(item).__name__}: {shorten(item)}"
            )
    return given


def gather(job_id: int, items: Iterable[Node]) -> Submission:
    """These nodes with the unapplied ones they need: what they wait for, their groups, and those groups' members.

    An edge to something that is not applied yet waits with it.
    """
    found: dict[int, Node] = {}
    edges: dict[int, Edge] = {}
    left = list(items)
    seen: set[int] = set()
    while left:
        node = left.pop()
        if node.id in seen:
            continue
        seen.add(node.id)
        _refuse_other_job(node, job_id)
        if not node.applied:
            found[node.id] = node
        left += [near for near in _needed(node) if not near.applied]
        for edge in (*node.incoming, *node.outgoing):
            if not edge.applied:
                edges[id(edge)] = edge
        left += [edge.previous for edge in node.incoming if not edge.applied and not edge.previous.applied]
    order = sorted(found)
    return Submission(
        job_id,
        tasks=[node for key in order if isinstance(node := found[key], Task)],
        groups=[node for key in order if isinstance(node := found[key], Group)],
        edges=[edge for edge in edges.values() if _is_due(edge, found, job_id)],
    )


def _needed(node: Node) -> list[Node]:
    near: list[Node] = []
    if node._group is not None:
        near.append(node._group)
    if isinstance(node, Group):
        near += [member for member in node.members if member._group_id == node.id]
    return near


def _is_due(edge: Edge, found: dict[int, Node], job_id: int) -> bool:
    for end in (edge.previous, edge.next):
        if end.applied:
            _refuse_other_job(end, job_id)
    return all(end.applied or end.id in found for end in (edge.previous, edge.next))


def _refuse_other_job(node: Node, job_id: int) -> None:
    if node.job_id is not None and node.job_id != job_id:
        raise CrossJobDependency(what=str(node), other_job_id=node.job_id, job_id=job_id)


# ---------------------------------------------------------------- from code that does not await


def blocking(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run to its end from code that does not await; inside a running loop, on a thread of its own."""
    if not in_running_loop():
        return asyncio.run(work())
    with ThreadPoolExecutor(1, thread_name_prefix="aaiclick-blocking") as pool:
        return pool.submit(lambda: asyncio.run(work())).result()


def refuse_running_loop(call: str, instead: str) -> None:
    """Say what to await, where blocking would stop the loop that this runs in."""
    if in_running_loop():
        raise RunningLoop(call=call, instead=instead)


def in_running_loop() -> bool:
    """Whether this code runs in an event loop, which blocking would stop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
