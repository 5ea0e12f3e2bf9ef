"""The contracts between execution and the stored state. Execution uses these verbs only, never the store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from aaiclick.orchestration.models import CacheAnswer, CacheKey, Claim, Held, Job, Orders, Receipt, Report, Worker
from aaiclick.orchestration.models.job_result import StoredResult
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.lanes import PLAIN


class Coordinator(Protocol):
    """The verbs of a worker."""

    async def register(
        self,
        *,
        hostname: str,
        pid: int,
        name: str | None = None,
        concurrency: int = 1,
        node: NodeDescription | None = None,
        worker_id: int = 0,
    ) -> Worker:
        """Begin a session, and return the new worker; `node` describes the machine, which is registered with it.

        `worker_id` is an id that the caller made for it (0: none). A repeated call with it returns the same worker.
        """

    async def beat(
        self,
        worker_id: int,
        *,
        known_call: int = 0,
        held: Sequence[Held] | None = None,
        completed: int = 0,
        failed: int = 0,
        unreported_s: int = 0,
        renewed: Callable[[], None] = lambda: None,
    ) -> Orders:
        """Renew the session, and compare the runs that the worker holds with its claims in the database.

        `held` lists all runs whose reports have not been acknowledged. `known_call` is the last claim call whose answer
        has arrived or was given up. Claims made by a call up to this one that are missing in `held` are released. If
        `held` is None, nothing is compared. `completed` and `failed` are added to the worker's counts. `unreported_s`
        is the age of the oldest unacknowledged report in seconds. `renewed` is called as soon as the session is
        renewed: the comparison may take longer, if another transaction has locked one of the tasks.
        """

    async def deregister(self, worker_id: int) -> bool:
        """End the session. Return whether it was live."""

    async def claim(
        self,
        worker_id: int,
        *,
        limit: int,
        reserved_for: int = 0,
        lanes: Sequence[int] | None = (PLAIN,),
        call: int = 0,
        begins: int = 0,
        wait_s: float = 0.0,
        again: bool = False,
    ) -> list[Claim]:
        """Claim up to `limit` ready tasks for the worker. `call` is the worker's own number of this call.

        Claims tasks that are reserved for the worker `reserved_for` (0: reserved for nobody) and belong to one of the
        `lanes`: the lanes in the order given, and within a lane by priority. None stands for the lanes that have work
        and whose needs the worker's node meets, the most urgent first.

        The bodies of the first `begins` claims begin at once, so if the session is lost, these count as lost runs. The
        other claims count as begun when a heartbeat says so. Raises SessionOver if the session is not live.

        With `wait_s` the answer may be held for so long, until there is work: where there is none, a server answers
        later; a coordinator whose hints are heard at once need not. `again`: the answer to this call, with this number,
        was not received: the claims that it made are returned, and only if there are none, others are made.
        """

    async def report(self, worker_id: int, reports: Sequence[Report]) -> Receipt:
        """Store the outcomes of runs. A report that is not in `Receipt.accepted` changes no task.

        A repeated report gets the same answer as the first time. One that contradicts an earlier report of the same run
        is a conflict. One of a run whose claim was taken away is late, and leaves one event per run. One that the
        database refuses fails its own task. None of these cases affects the other reports of the batch.
        """

    async def release(self, worker_id: int, claims: Sequence[Claim]) -> set[int]:
        """Release claims. Return the ids of the tasks whose claims were still held."""

    async def hold(self, claim: Claim, tables: Sequence[str]) -> str:
        """Register tables that the run of a claim is about to create. The tables it is given are held by the claim.

        Return the name of this installation. Raises ClaimLost if the claim is no longer live.
        """

    async def recall(self, claim: Claim, key: CacheKey) -> CacheAnswer:
        """Complete the run of a claim with the result that is remembered under this key, if there is one.

        Hit or miss is decided here alone, in the transaction that ends the claim. After a miss the body runs, and its
        `Done` says under which key its result is to be remembered. A repeated call gets the same answer. Raises
        ClaimLost if the claim is no longer live.
        """

    async def slots(self) -> int:
        """Return how many bodies all live workers together can run at a time."""

    async def callback(self, claim: Claim, digest: str) -> str | None:
        """Accept callbacks with the token of this digest for the claim's task, if the digest is not empty.

        Return what was called back for the task since it was last cleared, whichever attempt asked for it; None if
        nothing was. Raises ClaimLost if the claim is no longer live.
        """

    async def let_go(self, worker_id: int, runs: Sequence[tuple[int, int]]) -> None:
        """Free the tables of these runs, (task, epoch): their bodies are dead, and there is no report."""

    async def reconcile(self, job_id: int | None = None) -> float | None:
        """Promote delayed tasks that are due, work off postponed ripples, and fail the job if it is overdue.

        Return the seconds until the next delayed task is due; None if there is none.
        """

    async def grant_ids(self) -> None:
        """Obtain a grant to make unique ids, valid for up to two minutes; call again before it ends."""

    async def wait_for_hints(self, timeout_s: float) -> frozenset[str]:
        """Return the hints (`rules/naming/hints`) received since the last call, at once if there are any.

        Return an empty set on timeout. Hints may get lost: callers must also poll.
        """


class Submitter(Protocol):
    """The verbs of a process that submits graphs."""

    async def submit(self, submission: Submission) -> Job:
        """Store a graph in one transaction."""

    async def tables_of_others(self, job_id: int, tables: Collection[str]) -> set[str]:
        """Return those of these tables that belong to other jobs."""

    async def register_tables(self, job_id: int, tables: Sequence[str], mode: str | None) -> str:
        """Register tables that are about to be created from a job's arguments. `mode` is the job's preservation mode.

        With None, the mode of the stored job is used. Return the name of this installation.
        """

    async def leave_tables(self, tables: Sequence[str]) -> None:
        """Mark registered tables for dropping, unless they are needed."""


class FrontDoor(Submitter, Protocol):
    """The verbs of the front door that a body may call wherever it runs."""

    async def job(self, job_id: int) -> Job | None:
        """Return the current state of the job; None if there is no such job."""

    async def result_of(self, job_id: int) -> StoredResult:
        """Return the stored result of a completed job. Raises NotFound, or Conflict if it has not completed."""


class JobCoordinator(Coordinator, Submitter, Protocol):
    """The verbs of `job_test`, which submits a job, runs its tasks and waits for its end."""

    async def reserve(self, job_id: int, worker_id: int) -> None:
        """Reserve the unfinished tasks of a job for this worker: no other may claim them."""

    async def job(self, job_id: int) -> Job | None:
        """Return the current state of the job; None if there is no such job."""

    async def cancel(self, job_id: int) -> bool:
        """Cancel a job and its unfinished tasks. Return whether anything was cancelled."""
