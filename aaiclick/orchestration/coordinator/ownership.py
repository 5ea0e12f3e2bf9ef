"""Whose a worker and a run are; asked before a node may do something about them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from aaiclick.errors import NotAllowed
from aaiclick.orchestration.models.token import Token
from aaiclick.orchestration.store import workers
from aaiclick.orchestration.store.access.audit import was_done_by_node
from aaiclick.orchestration.store.claims import heartbeat_claims
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.nodes.registration import name_of_node

NO_NODE = 0
"""Stands for the node of workers that named none."""


async def node_of(database: Database, worker_id: int) -> int | None:
    """Return the node of a worker; NO_NODE if it named none, None if there is no such worker."""
    found = await database.read(lambda session: workers.get_worker(session, worker_id))
    return None if found is None else found.node_id or NO_NODE


async def runs_of(database: Database, worker_id: int, runs: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return those of these runs, (task, epoch), that are or were the worker's."""
    return await database.read(lambda session: heartbeat_claims.runs_of(session, worker_id, runs))


async def node_name(database: Database, token: Token) -> str:
    """Return the name of the node that a token is bound to; raise NotAllowed if that was removed."""
    row = await database.read(lambda session: name_of_node(session, token.node_id or NO_NODE))
    if row is None:
        hint = "Make a token for joining, with: aaiclick token create NAME --role join"
        raise NotAllowed(what="This", cause="the node that the token is bound to was removed", hint=hint)
    return row


async def time_of(database: Database) -> datetime:
    """Return the database's time."""
    return await database.read(lambda session: session.now())


async def job_of_run(database: Database, worker_id: int, task_id: int, epoch: int) -> int | None:
    """Return the job of a run that the worker has a live claim for; None if it has none."""
    return await database.read(lambda session: heartbeat_claims.job_of_claim(session, worker_id, task_id, epoch))


async def submitted_by(database: Database, job_id: int, node_id: int, *, perhaps: bool = False) -> bool:
    """Return whether a job was submitted with a token of this node. `perhaps`: also if how that ended is not known."""
    outcomes = {"done", None} if perhaps else {"done"}
    return await database.read(lambda session: was_done_by_node(session, f"job {job_id}", "submit", node_id, outcomes))
