"""The few verbs with which execution speaks to the state. It never sees the store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from aaiclick.orchestration.models import Claim, Held, Job, Orders, Receipt, Report, Worker
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.lanes import PLAIN


class Coordinator(Protocol):
    """What a worker may ask."""

    async def register(self, *, hostname: str, pid: int, name: str | None = None, concurrency: int = 1) -> Worker:
        """Begin a session."""

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
        """Renew the session, and compare what the worker holds with what the state says it holds.

        `held` are all runs whose reports have not been acknowledged, and `known_call` the last claim call whose answer
        is known (or will never be): what such a call claimed and the list does not name is given back. Without a list
        nothing is compared. `completed` and `failed` are added to the worker's counts; `unreported_s` says for how
        long it has owed the oldest report. `renewed` is called as soon as the session lives on: to compare may take
        longer, where somebody has locked one of the tasks.
        """

    async def deregister(self, worker_id: int) -> bool:
        """End the session."""

    async def claim(
        self,
        worker_id: int,
        *,
        limit: int,
        reserved_for: int = 0,
        lanes: Sequence[int] = (PLAIN,),
        call: int = 0,
        begins: int = 0,
    ) -> list[Claim]:
        """Take up to `limit` tasks that are ready, in order; `call` is the worker's number of this call.

        Of the tasks that are reserved for the worker `reserved_for` (0: for nobody), those of the `lanes` that this
        worker may serve: lane after lane as they are listed, and in each by priority.

        The bodies of the first `begins` will begin at once: if the session is lost, so are these runs. The others count
        as begun when a heartbeat says so. Refused with SessionOver if the session is not live.
        """

    async def report(self, worker_id: int, reports: Sequence[Report]) -> Receipt:
        """Say what runs came to; what is not among those accepted changes nothing.

        A report that is repeated is answered as the first time. One that says something else than its run did before is
        a conflict; one of a run that was taken away came too late, which leaves one event for each run. One that the
        database refuses fails alone. In all of this the others count.
        """

    async def release(self, worker_id: int, claims: Sequence[Claim]) -> set[int]:
        """Give tasks back; gives the ids of those that were still held."""

    async def hold(self, claim: Claim, tables: Sequence[str]) -> str:
        """Say which tables the run of a claim may make, before it does; those it is given are its own by the claim.

        Refused if the claim is not live any more. Gives what this installation is called.
        """

    async def slots(self) -> int:
        """How many bodies the live workers run at a time."""

    async def let_go(self, worker_id: int, runs: Sequence[tuple[int, int]]) -> None:
        """Say that the bodies of these runs, (task, epoch), are dead, and report nothing."""

    async def reconcile(self, job_id: int | None = None) -> float | None:
        """Promote what is due, work off what was postponed, end the job if its time is up.

        Gives the seconds until something is due again.
        """

    async def grant_ids(self) -> None:
        """Let this process make ids that no other makes, for a minute or two: ask again within that time."""

    async def wait_for_hints(self, timeout_s: float) -> frozenset[str]:
        """What was told by others since the last call (`rules/naming/hints`), at once if there is something.

        Nothing when the time is up. A hint may get lost: what it tells of is found by looking, too.
        """


class Submitter(Protocol):
    """What whoever submits a graph may ask."""

    async def submit(self, submission: Submission) -> Job:
        """Store a graph: all of it, or nothing."""

    async def tables_of_others(self, job_id: int, tables: Collection[str]) -> set[str]:
        """Those of these tables that belong to other jobs than this one."""

    async def register_tables(self, job_id: int, tables: Sequence[str], mode: str | None) -> str:
        """Say which tables are about to be made of what the job is given, and how it keeps them.

        Without a mode, the stored job's counts. Gives what this installation is called.
        """

    async def leave_tables(self, tables: Sequence[str]) -> None:
        """Let tables that were registered go again, unless somebody needs them."""


class JobCoordinator(Coordinator, Submitter, Protocol):
    """What `job_test` may ask: it submits a job, works for it, and sees to its end."""

    async def reserve(self, job_id: int, worker_id: int) -> None:
        """Keep a job for this worker: nobody else may claim its tasks."""

    async def job(self, job_id: int) -> Job | None:
        """The job as it is now."""

    async def cancel(self, job_id: int) -> bool:
        """End a job with all that has not ended of it."""
