"""The verbs of workers at a server: what each asks, and how it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from msgspec import structs

from aaiclick.errors import ClaimLost
from aaiclick.orchestration.access.audit import audited
from aaiclick.orchestration.access.node_tokens import join, renew
from aaiclick.orchestration.coordinator.claiming import installation_of
from aaiclick.orchestration.coordinator.direct import (
    DirectCoordinator,
    callback_for,
    hold_for,
)
from aaiclick.orchestration.coordinator.http import protocol, replica_protocol
from aaiclick.orchestration.coordinator.machine_ids import lend_ids
from aaiclick.orchestration.coordinator.ownership import node_name, time_of
from aaiclick.orchestration.models import CacheAnswer, Claim, Held, Worker
from aaiclick.orchestration.models.job_result import StoredResult
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.models.token import Token
from aaiclick.orchestration.rules.roles import Role
from aaiclick.orchestration.store.access.callbacks import Awaiting
from aaiclick.orchestration.store.replicas import source
from aaiclick.server.node.database_room import DatabaseRoom
from aaiclick.server.node.held_claims import HeldClaims
from aaiclick.server.node.hint_board import HintBoard
from aaiclick.server.node.log_pieces import LogDesk, refuse_stranger
from aaiclick.server.node.rights import Rights, log_place
from aaiclick.server.node.sent_graphs import check_done, check_submission


@dataclass(slots=True)
class Desk:
    """What the verbs of one server share."""

    coordinator: DirectCoordinator
    room: DatabaseRoom
    ending: asyncio.Event
    """Set when the server ends: nobody is held any longer."""
    board: HintBoard = field(default_factory=HintBoard)
    held: HeldClaims = field(init=False)
    rights: Rights = field(init=False)
    logs: LogDesk = field(default_factory=LogDesk)

    def __post_init__(self) -> None:
        self.held = HeldClaims(self.claim, self.board)
        self.rights = Rights(self.coordinator.database)

    async def claim(self, asked: protocol.ClaimTasks) -> list[Claim]:
        """Claim now, if there is room in the database."""
        async with self.room.place(urgent=False):
            claims = await self.coordinator.claim(
                asked.worker,
                limit=asked.limit,
                reserved_for=asked.reserved_for,
                lanes=asked.lanes,
                call=asked.call,
                begins=asked.begins,
                again=asked.again,
            )
            self.rights.gave(claims)
            return claims


class Verb(NamedTuple):
    """A verb. `urgent`: it comes before claims; `holds`: it may wait, and takes its place in the database by itself."""

    asks: type[protocol.Ask]
    answer: Callable[[Desk, Token, Any], Awaitable[object]]
    role: Role | None
    """None: any role."""
    urgent: bool = True
    holds: bool = False
    for_runs: bool = False
    """Nodes may call it too, in the name of a run of theirs."""


async def _register(desk: Desk, who: Token, asked: protocol.Register) -> Worker:
    node = asked.node or NodeDescription(asked.hostname)
    named = replace(node, name=await node_name(desk.coordinator.database, who), pool=who.pool or node.pool)
    return await desk.coordinator.register(
        hostname=asked.hostname,
        pid=asked.pid,
        name=asked.name,
        concurrency=asked.concurrency,
        node=named,
        worker_id=asked.worker,
    )


async def _beat(desk: Desk, who: Token, asked: protocol.Beat) -> protocol.Ordered:
    orders = await desk.coordinator.beat(
        asked.worker,
        known_call=asked.known_call,
        held=None if asked.held is None else [_seen(run) for run in asked.held],
        completed=asked.completed,
        failed=asked.failed,
        unreported_s=asked.unreported_s,
    )
    stop = [(*run, why) for run, why in orders.stop.items()]
    return protocol.Ordered(orders.alive, orders.drain, stop, await _renewed(who, asked.renew))


async def _renewed(who: Token, digest: str) -> protocol.GivenToken | None:
    """Renew a token, if that is asked for and due."""
    made = await renew(who, digest) if digest else None
    return None if made is None else _given(made)


def _given(made: Token) -> protocol.GivenToken:
    assert made.expires_at is not None
    return protocol.GivenToken(made.id, (made.expires_at - made.created_at).total_seconds())


async def _join(desk: Desk, who: Token, asked: protocol.Join) -> protocol.GivenToken:
    return _given(await join(who, asked.node, asked.digest))


async def _who(desk: Desk, who: Token, asked: protocol.Ask) -> protocol.Identity:
    if who.expires_at is None:
        return protocol.Identity(who.role)
    now = await time_of(desk.coordinator.database)
    return protocol.Identity(
        who.role, (who.expires_at - who.created_at).total_seconds(), (who.expires_at - now).total_seconds()
    )


def _seen(run: Held) -> Held:
    return replace(run, log_path=log_place(run.task_id, run.epoch, run.log_path))


async def _deregister(desk: Desk, who: Token, asked: protocol.OfWorker) -> bool:
    return await desk.coordinator.deregister(asked.worker)


async def _claim(desk: Desk, who: Token, asked: protocol.ClaimTasks) -> protocol.Claimed:
    since = asked.since or desk.board.place
    if asked.lanes is not None:
        asked = structs.replace(
            asked, lanes=tuple(await desk.coordinator.claiming.choice.met(asked.worker, asked.lanes))
        )
    kind = who.node_id or 0 if desk.coordinator.database.lanes.needs else 0  # without placement all nodes are alike
    claims = await desk.held.claim(asked, desk.ending, kind=kind)
    hints, place = desk.board.since(since), desk.board.place
    found = protocol.Claimed(hints=hints, since=place)
    places: dict[int, int] = {}
    for claim in claims:
        given = None
        if claim.inputs or claim.members or claim.outputs:
            given = places.setdefault(id(claim.inputs), len(found.given))
            if given == len(found.given):
                found.given.append(protocol.Given(claim.inputs, claim.members, claim.outputs))
        names = (name for name in protocol.SentClaim.__struct_fields__ if name != "given")
        found.claims.append(protocol.SentClaim(**{name: getattr(claim, name) for name in names}, given=given))
    return found


async def _report(desk: Desk, who: Token, asked: protocol.Reports) -> protocol.Receipted:
    for done in asked.done:
        check_done(done)
    receipt = await desk.coordinator.report(asked.worker, await desk.rights.own_reports(asked))
    return protocol.Receipted(sorted(receipt.accepted), sorted(receipt.conflicts), receipt.due_s)


async def _log(desk: Desk, who: Token, asked: protocol.LogPiece) -> protocol.Written:
    run = (asked.task_id, asked.epoch)
    if not desk.rights.is_known_of(asked.worker, run):
        async with desk.room.place(urgent=False):
            if run not in await desk.rights.own_runs(asked.worker, [run]):
                refuse_stranger(asked)
    return await desk.logs.write(asked)


async def _release(desk: Desk, who: Token, asked: protocol.Runs) -> set[int]:
    own = await desk.rights.own_runs(asked.worker, asked.runs)
    return await desk.coordinator.release_runs(asked.worker, dict(own))


async def _let_go(desk: Desk, who: Token, asked: protocol.Runs) -> None:
    await desk.coordinator.let_go(asked.worker, sorted(await desk.rights.own_runs(asked.worker, asked.runs)))


async def _hold(desk: Desk, who: Token, asked: protocol.HoldTables) -> str:
    return await hold_for(desk.coordinator.database, asked.worker, (asked.task_id, asked.epoch), asked.tables)


async def _callback(desk: Desk, who: Token, asked: protocol.AwaitCallback) -> str | None:
    run = (asked.task_id, asked.epoch)
    if not await desk.rights.own_runs(asked.worker, [run]):
        raise ClaimLost(task_id=asked.task_id, epoch=asked.epoch, move="callback")
    awaiting = Awaiting(*run, asked.worker, asked.generation)
    return await callback_for(desk.coordinator.database, awaiting, asked.digest)


async def _recall(desk: Desk, who: Token, asked: protocol.RecallResult) -> CacheAnswer:
    return await desk.coordinator.recall_run(asked.worker, (asked.task_id, asked.epoch), asked.key)


async def _slots(desk: Desk, who: Token, _: protocol.Ask) -> int:
    return await desk.coordinator.slots()


async def _reconcile(desk: Desk, who: Token, asked: protocol.Reconcile) -> float | None:
    return await desk.coordinator.reconcile(asked.job_id)


async def _ids(desk: Desk, who: Token, asked: protocol.AskIds) -> protocol.GrantedIds:
    now_ms, grant = await lend_ids(desk.coordinator.database, asked.until_ms)
    if grant is None:
        return protocol.GrantedIds(now_ms)
    return protocol.GrantedIds(now_ms, grant.machine_id, grant.from_ms, grant.until_ms)


async def _hints(desk: Desk, who: Token, asked: protocol.Hear) -> protocol.Heard:
    since = asked.since or desk.board.place
    await desk.board.wait(since, min(asked.wait_s, protocol.HELD_S_MAX), desk.ending)
    return protocol.Heard(desk.board.since(since), desk.board.place)


async def _submit(desk: Desk, who: Token, asked: protocol.Submit) -> protocol.SentJob:
    check_submission(asked.graph)
    submission = asked.graph.submission()
    again = asked.again and await desk.rights.may_have_submitted(who, submission)
    async with audited(who, "submit", f"job {submission.job_id}") as change:  # by this it is known whose it is
        job = await desk.coordinator.submit(submission, again=again)
        change.target = f"job {job.id}"
        return protocol.SentJob.of(job)


async def _job(desk: Desk, who: Token, asked: protocol.OfJob) -> protocol.SentJob | None:
    found = await desk.coordinator.job(asked.job_id)
    return None if found is None else protocol.SentJob.of(found)


async def _result_of(desk: Desk, who: Token, asked: protocol.OfJob) -> StoredResult:
    return await desk.coordinator.result_of(asked.job_id)


async def _tables_of_others(desk: Desk, who: Token, asked: protocol.JobTables) -> set[str]:
    return await desk.coordinator.tables_of_others(asked.job_id, asked.tables)


async def _register_tables(desk: Desk, who: Token, asked: protocol.JobTables) -> str:
    return await desk.coordinator.register_tables(asked.job_id, asked.tables, asked.mode)


async def _leave_tables(desk: Desk, who: Token, asked: protocol.Tables) -> None:
    await desk.coordinator.leave_tables(asked.tables)


# ---------------------------------------------------------------- replicas


async def _replica_start(desk: Desk, who: Token, asked: replica_protocol.OfReplica) -> source.Start:
    asked.check()
    database = desk.coordinator.database
    await installation_of(database)
    return await database.read(source.read_start)


async def _replica_page(desk: Desk, who: Token, asked: replica_protocol.AskPage) -> source.SourcePage:
    work = partial(source.read_source_page, choice=asked.choice(), limit=asked.limit, digest=asked.digest)
    return await desk.coordinator.database.read(work)


async def _replica_changes(desk: Desk, who: Token, asked: replica_protocol.AskChanges) -> source.Changes:
    asked.check()
    work = partial(source.read_changes, after=asked.after, mark=asked.mark, limit=asked.limit)
    return await desk.coordinator.database.read(work)


async def _replica_workers(desk: Desk, who: Token, asked: replica_protocol.AskWorkers) -> list[list[Any]]:
    asked.check()
    return await desk.coordinator.database.read(partial(source.read_workers, known=asked.known))


LOG = Verb(protocol.LogPiece, _log, Role.WORKER, urgent=False, holds=True)
"""That of `PUT runs/{task}.{epoch}/log`."""

VERBS: Mapping[str, Verb] = {
    "join": Verb(protocol.Join, _join, Role.JOIN),
    "who": Verb(protocol.Ask, _who, None),
    "register": Verb(protocol.Register, _register, Role.WORKER),
    "beat": Verb(protocol.Beat, _beat, Role.WORKER),
    "deregister": Verb(protocol.OfWorker, _deregister, Role.WORKER),
    "claim": Verb(protocol.ClaimTasks, _claim, Role.WORKER, urgent=False, holds=True),
    "report": Verb(protocol.Reports, _report, Role.WORKER),
    "release": Verb(protocol.Runs, _release, Role.WORKER),
    "let_go": Verb(protocol.Runs, _let_go, Role.WORKER),
    "hold": Verb(protocol.HoldTables, _hold, Role.WORKER),
    "callback": Verb(protocol.AwaitCallback, _callback, Role.WORKER),
    "recall": Verb(protocol.RecallResult, _recall, Role.WORKER),
    "slots": Verb(protocol.Ask, _slots, Role.WORKER, urgent=False),
    "reconcile": Verb(protocol.Reconcile, _reconcile, Role.WORKER, urgent=False),
    "ids": Verb(protocol.AskIds, _ids, Role.WORKER),
    "hints": Verb(protocol.Hear, _hints, Role.WORKER, holds=True),
    "submit": Verb(protocol.Submit, _submit, Role.WORKER, urgent=False, for_runs=True),
    "job": Verb(protocol.OfJob, _job, Role.VIEWER, urgent=False, for_runs=True),
    "result_of": Verb(protocol.OfJob, _result_of, Role.VIEWER, urgent=False, for_runs=True),
    "tables_of_others": Verb(protocol.JobTables, _tables_of_others, Role.WORKER, urgent=False, for_runs=True),
    "register_tables": Verb(protocol.JobTables, _register_tables, Role.WORKER, urgent=False, for_runs=True),
    "leave_tables": Verb(protocol.Tables, _leave_tables, Role.WORKER, urgent=False, for_runs=True),
    "replica_start": Verb(replica_protocol.OfReplica, _replica_start, Role.REPLICA, urgent=False),
    "replica_page": Verb(replica_protocol.AskPage, _replica_page, Role.REPLICA, urgent=False),
    "replica_changes": Verb(replica_protocol.AskChanges, _replica_changes, Role.REPLICA, urgent=False),
    "replica_workers": Verb(replica_protocol.AskWorkers, _replica_workers, Role.REPLICA, urgent=False),
}
