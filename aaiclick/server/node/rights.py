"""What the token of a node may do: nothing beyond the claims of its own workers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from aaiclick.errors import NotAllowed
from aaiclick.orchestration.coordinator import ownership
from aaiclick.orchestration.coordinator.http import protocol
from aaiclick.orchestration.log_stores.opening import log_store
from aaiclick.orchestration.models import Claim, Done, Failure
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.models.token import Token
from aaiclick.orchestration.rules.roles import Role
from aaiclick.orchestration.store.database import Database

KNOWN_MAX = 100_000
"""Workers whose nodes, and runs whose workers are remembered; others are looked up."""

Run = tuple[int, int]


class Rights:
    """The checks of one server. Whom a worker and a run belong to never changes, so answers are kept."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._node_of: OrderedDict[int, int | None] = OrderedDict()
        self._worker_of: OrderedDict[Run, int] = OrderedDict()

    async def check(self, token: Token, asked: protocol.Ask) -> None:
        """Raise NotAllowed if the call is about a worker of another node, or asks for tasks that are reserved."""
        if isinstance(asked, protocol.ForRun) and token.role == Role.WORKER:
            await self._check_run(token, asked)
        elif isinstance(asked, protocol.OfWorker):
            await self._check_worker(token, asked.worker)
            if isinstance(asked, protocol.ClaimTasks) and asked.reserved_for:
                raise NotAllowed(what="This", cause="tasks that are reserved are for their owner", hint="")

    async def _check_worker(self, token: Token, worker_id: int) -> None:
        node_id = await self._node(worker_id)
        if token.role != Role.WORKER or token.node_id is None:
            hint = "Join with a token of the role join."
            raise NotAllowed(what="This", cause="the token is bound to no node", hint=hint)
        if node_id is not None and node_id != token.node_id:
            cause = f"worker {worker_id} is not of the node that this token is bound to"
            raise NotAllowed(what="This", cause=cause, hint="")

    async def _check_run(self, token: Token, asked: protocol.ForRun) -> None:
        """Raise NotAllowed unless the run is live, and the job its own, a new one, or one that its node submitted."""
        if asked.run is None:
            hint = "It is for the bodies of tasks, and for tokens of other roles."
            raise NotAllowed(what="This", cause="it was not asked in the name of a run", hint=hint)
        await self._check_worker(token, asked.run[0])
        own = await ownership.job_of_run(self._database, *asked.run)
        if own is None:
            raise NotAllowed(what="This", cause="the run in whose name it was asked has ended", hint="")
        wanted = _job_of(asked)
        if wanted in (None, own) or await ownership.submitted_by(self._database, wanted, token.node_id or 0):
            return
        cause = f"job {wanted} is not the run's, nor was it submitted on this node"
        raise NotAllowed(what="This", cause=cause, hint="Ask the server's REST API, with a token of your own.")

    async def may_have_submitted(self, token: Token, submission: Submission) -> bool:
        """Return whether an earlier call of this node may have stored this: else it could ask for jobs of others."""
        named = submission.tasks or submission.groups
        node_id = token.node_id or 0
        return bool(named) and await ownership.submitted_by(self._database, submission.job_id, node_id, perhaps=True)

    async def _node(self, worker_id: int) -> int | None:
        """Return the node of a worker; None if there is no such worker, about which nothing can be asked."""
        if worker_id not in self._node_of:
            found = await ownership.node_of(self._database, worker_id)
            if found is None:
                return None
            _remember(self._node_of, worker_id, found)
        return self._node_of[worker_id]

    def gave(self, claims: Iterable[Claim]) -> None:
        """Note claims that were handed out."""
        for claim in claims:
            _remember(self._worker_of, (claim.task_id, claim.epoch), claim.worker_id)

    async def own_runs(self, worker_id: int, runs: Collection[Run]) -> set[Run]:
        """Return those of these runs that are or were the worker's."""
        own = {run for run in runs if self._worker_of.get(run) == worker_id}
        doubtful = [run for run in runs if run not in own]
        found = await ownership.runs_of(self._database, worker_id, doubtful) if doubtful else set()
        for run in found:
            _remember(self._worker_of, run, worker_id)
        return own | found

    def is_known_of(self, worker_id: int, run: Run) -> bool:
        """Return whether a run is known to be or to have been the worker's, without asking the database."""
        return self._worker_of.get(run) == worker_id

    async def own_reports(self, asked: protocol.Reports) -> list[Done | Failure]:
        """Return the reports of the worker's own runs. Whatever it says of others changes nothing."""
        reports: list[Done | Failure] = [*asked.done, *asked.failed]
        own = await self.own_runs(asked.worker, [(report.task_id, report.epoch) for report in reports])
        return [_with_log_place(report) for report in reports if (report.task_id, report.epoch) in own]


def _job_of(asked: protocol.ForRun) -> int | None:
    """Return the stored job that a call is about; None if there is none, as with one that is being made."""
    if isinstance(asked, protocol.Submit):
        return None if asked.graph.new_job is not None else asked.graph.job_id
    if isinstance(asked, protocol.JobTables):
        return None if asked.mode is not None else asked.job_id
    return asked.job_id if isinstance(asked, protocol.OfJob) else None


def _remember(known: OrderedDict[Any, Any], key: object, value: object) -> None:
    known[key] = value
    if len(known) > KNOWN_MAX:
        known.popitem(last=False)


def _with_log_place(report: Done | Failure) -> Done | Failure:
    return replace(report, log_path=log_place(report.task_id, report.epoch, report.log_path))


def log_place(task_id: int, epoch: int, said: str | None) -> str | None:
    """Return where the log of a run is, if its worker said that there is one: what is a path there is none here."""
    return None if said is None else log_store().place_of(task_id, epoch)
