"""Task managers: the state of jobs and tasks in one object, and for fleets the nodes, leases and reports."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from aaiclick.config import settings
from aaiclick.distributed.configuration import DistributedConfig, Storage
from aaiclick.distributed.leases import TaskLease, lease_id
from aaiclick.distributed.node_registry import NodeRegistry
from aaiclick.errors import Conflict, IdempotencyConflict, InputError, NotFound, SessionOver
from aaiclick.orchestration.control.repairs import end_dead_sessions
from aaiclick.orchestration.coordinator.claiming import installation_of
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.models import Claim, Done, Task, TaskStatus
from aaiclick.orchestration.models.node_info import NodeInfo
from aaiclick.orchestration.results.task_results import encode_returned
from aaiclick.orchestration.rules.affinity import failed_on
from aaiclick.orchestration.rules.placement import (
    Placement,
    PlacementConstraints,
    leaves_to_others,
    misses,
    satisfies_placement,
)
from aaiclick.orchestration.rules.validation import check_id, shorten
from aaiclick.orchestration.store.claims import single_claims
from aaiclick.orchestration.store.claims.on_node import count_on_node
from aaiclick.orchestration.store.claims.recoveries import recover_claims
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.lanes import read_needs
from aaiclick.orchestration.store.reading import jobs as reading
from aaiclick.orchestration.store.reading.nodes import open_nodes
from aaiclick.orchestration.store.reading.task_list import TaskChoice, list_tasks
from aaiclick.orchestration.store.session import Session

LISTED_MAX = 1_000
NODES_MAX = 10_000
TaskId = str | int


class TaskManager:
    """Reads tasks of a state. With `distributed`, it is a DistributedTaskManager.

    The storage is opened by the first call. Close the manager, or use `async with`.
    """

    def __new__(cls, storage: Storage | None = None, distributed: DistributedConfig | None = None) -> TaskManager:
        return object.__new__(DistributedTaskManager if distributed is not None else cls)

    def __init__(self, storage: Storage | None = None, distributed: DistributedConfig | None = None) -> None:
        self.storage, self.distributed = storage, distributed
        self._database: Database | None = None
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> TaskManager:
        await self.database()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def database(self) -> Database:
        """Return the open database of the storage."""
        if self.distributed is not None and self.distributed.coordinator_url is not None:
            hint = "Start it with: aaiclick worker start --coordinator URL"
            cause = "a worker with coordinator_url opens no storage; it asks the server"
            raise Conflict(what="The storage", verb="opened", cause=cause, hint=hint)
        if self.storage is None:
            hint = "Give SQLiteStorage(path) or PostgreSQLStorage(url)."
            raise InputError(field="storage", value=None, rule="this call needs one", hint=hint)
        async with self._opening:
            if self._database is None:
                self._database = await Database.open(self.storage.url)
        return self._database

    async def close(self) -> None:
        """Close the database."""
        database, self._database = self._database, None
        if database is not None:
            await database.close()

    async def list_tasks(self, status: TaskStatus | None = None) -> list[Task]:
        """Return up to 1,000 tasks, the newest first."""
        database = await self.database()
        choice = TaskChoice(status=status)
        return (await database.read(lambda session: list_tasks(session, choice, None, LISTED_MAX))).tasks

    async def get_task(self, task_id: TaskId) -> Task:
        """Return a task as it is now. Raise NotFound."""
        wanted, database = id_of(task_id), await self.database()
        found = await database.read(lambda session: reading.get_task(session, wanted))
        if found is None:
            raise NotFound(what="task", field="id", value=wanted, hint="")
        return found


class DistributedTaskManager(TaskManager):
    """Nodes, leases and reports, by the names of the design: over sessions, claims and reports of workers."""

    async def registry(self) -> NodeRegistry:
        """Return the registry of nodes."""
        assert self.distributed is not None
        return NodeRegistry(await self.database(), session_s=self.distributed.session_s)

    async def coordinator(self) -> DirectCoordinator:
        """Return the coordinator that takes reports."""
        return DirectCoordinator(await self.database())

    # ------------------------------------------------------------ nodes

    async def register_node(
        self, node_id: str, capabilities: dict[str, Any], executor_types: Sequence[str] = ("python",)
    ) -> NodeInfo:
        """Register a node, with a session that its heartbeats keep alive."""
        return await (await self.registry()).register_node(node_id, capabilities, executor_types)

    async def heartbeat(self, node_id: str) -> None:
        """Renew the node's session, and with it all of its leases. Raise SessionOver if it has ended."""
        await (await self.registry()).heartbeat(node_id)

    async def deregister_node(self, node_id: str) -> None:
        """End the node's session. What it held is given to others by the next recovery."""
        await (await self.registry()).deregister_node(node_id)

    # ------------------------------------------------------------ leases

    async def find_executable_tasks(self, node_id: str) -> list[Task]:
        """Return up to 1,000 ready tasks that this node may run now."""
        node, database = await (await self.registry()).get_node(node_id), await self.database()
        worker_id = await (await self.registry()).worker_of(node_id)

        async def work(session: Session) -> list[Task]:
            found = await single_claims.ready_tasks(session, LISTED_MAX)
            needs = await read_needs(session, {task.lane for task in found if task.lane})
            known = {lane: single_claims.parsed(text) for lane, text in needs.items()}
            doubtful = any(failed_on(needs, node.name) for needs in known.values())
            there = await open_nodes(session, NODES_MAX) if doubtful else ()
            return [
                task
                for task in found
                if not misses(known.get(task.lane, {}), node)
                and not leaves_to_others(known.get(task.lane, {}), node, there)
                and await _has_room(session, worker_id, task.entrypoint, known.get(task.lane, {}))
            ]

        return await database.transact(work)

    async def acquire_lease(
        self,
        task_id: TaskId,
        node_id: str,
        constraints: PlacementConstraints | Placement | None = None,
        duration: float | None = None,
    ) -> TaskLease | None:
        """Lease a ready task to a node; None if it is leased already, or if the node may not run it.

        `duration` renews the node's session for so many seconds. Raise SessionOver if it has ended.
        """
        wanted, registry = id_of(task_id), await self.registry()
        node, worker_id = await registry.get_node(node_id), await registry.worker_of(node_id)
        task = await self.get_task(wanted)
        if constraints is not None and not satisfies_placement(constraints, node):
            return None
        database = await self.database()
        installation = await installation_of(database)

        async def work(session: Session) -> Claim | None:
            needs = await read_needs(session, {task.lane} if task.lane else set())
            said = {lane: single_claims.parsed(text) for lane, text in needs.items()}.get(task.lane, {})
            there = await open_nodes(session, NODES_MAX) if failed_on(said, node.name) else ()
            if leaves_to_others(said, node, there):
                return None
            if misses(said, node) or not await _has_room(session, worker_id, task.entrypoint, said):
                return None
            return await single_claims.claim_task(
                session, worker_id=worker_id, task_id=wanted, installation=installation
            )

        claim = await database.transact(work)
        if claim is None:
            return None
        if duration is not None:
            await registry.heartbeat(node_id, duration)
        held = await database.read(lambda session: single_claims.read_held(session, wanted))
        assert held.claimed_at is not None, "it has just been claimed"
        return TaskLease(
            task_id=str(wanted),
            node_id=node_id,
            lease_id=lease_id(worker_id, wanted, claim.epoch),
            idempotency_key=claim.idempotency_key,
            attempt_id=claim.epoch,
            acquired_at=held.claimed_at,
            expires_at=held.expires_at or held.claimed_at,
            claim=claim,
            renewing=self._renew,
        )

    async def renew_lease(self, lease: TaskLease) -> None:
        """Renew the session of the lease's node. Raise SessionOver if the lease, or the session, has ended."""
        await lease.renew()

    async def _renew(self, lease: TaskLease, duration: float | None) -> datetime:
        await (await self.registry()).heartbeat(lease.node_id, duration)
        database, task_id = await self.database(), lease.claim.task_id
        held = await database.read(lambda session: single_claims.read_held(session, task_id))
        if held.expires_at is None or (held.epoch, held.worker_id) != (lease.claim.epoch, lease.claim.worker_id):
            raise SessionOver(worker_id=lease.claim.worker_id, cause=f"its lease of task {task_id} is", swept=True)
        return held.expires_at

    # ------------------------------------------------------------ reports, recovery

    async def report_completion(
        self, task_id: TaskId, node_id: str, result: object, idempotency_key: str | None = None
    ) -> None:
        """Complete a task that the node has leased. A repeated report changes nothing.

        Raise IdempotencyConflict if the key is not that of the task, and Conflict if the lease has ended.
        """
        task = await self.get_task(task_id)
        if idempotency_key not in (None, task.idempotency_key):
            cause, hint = f"the key of its execution is {task.idempotency_key}", "Give the key of the lease."
            raise IdempotencyConflict(what=f"Task {task.id}", key=idempotency_key, cause=cause, hint=hint)
        worker_id = await (await self.registry()).worker_of(node_id)
        text, _ = encode_returned(result, task.job_id)
        receipt = await (await self.coordinator()).report(worker_id, [Done(task.id, task.epoch, text)])
        if (task.id, task.epoch) not in receipt.accepted:
            cause = f"node {node_id} has no lease of it, or has reported something else"
            raise Conflict(what=f"Task {task.id}", verb="completed", cause=cause, hint="Acquire a lease first.")

    async def recover_stale_leases(self) -> list[str]:
        """End sessions that are past their end, and give what they held to others; return these tasks."""
        database, losses_max = await self.database(), settings().losses_max
        await end_dead_sessions(database)
        found = await database.read(single_claims.claims_of_nobody)
        while await database.transact(partial(recover_claims, losses_max=losses_max)):
            pass
        return [str(task_id) for task_id in found]

    async def serve(self) -> None:
        """Recover stale leases again and again, every `cleanup_interval_seconds`, until cancelled."""
        assert self.distributed is not None
        while True:
            await self.recover_stale_leases()
            await asyncio.sleep(self.distributed.cleanup_interval_seconds)


async def _has_room(session: Session, worker_id: int, entrypoint: str, needs: Any) -> bool:
    """Return whether the node may take another task of this function. It stays locked until the transaction ends."""
    most = needs.get("max_parallel")
    if most is None:
        return True
    running = await count_on_node(session, worker_id, entrypoint)
    return running is None or running < most


def id_of(task_id: TaskId) -> int:
    """Return the id of a task that was given as a number or as its text."""
    if isinstance(task_id, str):
        if not task_id.isdecimal() or len(task_id) > 19:
            raise InputError(field="task_id", value=shorten(task_id), rule="the digits of an id", hint="")
        return check_id(int(task_id), "task_id")
    return check_id(task_id, "task_id")
