"""A coordinator at the other end of a wire: what is asked and answered is plain data that msgspec carries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import msgspec

from aaiclick.orchestration.coordinator.contract import JobCoordinator
from aaiclick.orchestration.models import CacheAnswer, CacheKey, Claim, Held, Job, Orders, Receipt, Report, Worker
from aaiclick.orchestration.models.claim import Done, Failure
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.models.sent_submission import SentSubmission
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.lanes import PLAIN

T = TypeVar("T")


def over(kind: Any, value: T) -> T:
    """The value as it arrives at the other end."""
    there: T = msgspec.msgpack.decode(msgspec.msgpack.encode(value), type=kind)
    return there


def report_over(report: Report) -> Report:
    return over(Done if isinstance(report, Done) else Failure, report)


class CarriedSubmitter:
    """Asks another process to store graphs, and hands it nothing but what arrives of the arguments."""

    def __init__(self, there: JobCoordinator) -> None:
        self.there = there

    async def submit(self, submission: Submission) -> Job:
        job = await self.there.submit(over(SentSubmission, SentSubmission.of(submission)).submission())
        submission.hand_over()
        return job

    async def tables_of_others(self, job_id: int, tables: Collection[str]) -> set[str]:
        return over(set[str], await self.there.tables_of_others(job_id, over(list[str], list(tables))))

    async def register_tables(self, job_id: int, tables: Sequence[str], mode: str | None) -> str:
        return over(
            str, await self.there.register_tables(job_id, over(list[str], list(tables)), over(str | None, mode))
        )

    async def leave_tables(self, tables: Sequence[str]) -> None:
        await self.there.leave_tables(over(list[str], list(tables)))


class CarriedCoordinator(CarriedSubmitter):
    """Asks another coordinator, and hands it nothing but what arrives of the arguments."""

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
        said: dict[str, Any] = {"hostname": hostname, "pid": pid, "name": name, "concurrency": concurrency}
        described = over(NodeDescription | None, node)
        return over(Worker, await self.there.register(**said, node=described, worker_id=worker_id))

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
        orders = await self.there.beat(
            worker_id,
            known_call=known_call,
            held=over(list[Held] | None, None if held is None else list(held)),
            completed=completed,
            failed=failed,
            unreported_s=unreported_s,
        )
        if orders.alive:
            renewed()
        return over(Orders, orders)

    async def deregister(self, worker_id: int) -> bool:
        return await self.there.deregister(worker_id)

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
        served = over(list[int] | None, None if lanes is None else list(lanes))
        options: dict[str, Any] = {"limit": limit, "reserved_for": reserved_for, "call": call, "begins": begins}
        claims = await self.there.claim(worker_id, lanes=served, **options, wait_s=wait_s, again=again)
        return over(list[Claim], claims)

    async def report(self, worker_id: int, reports: Sequence[Report]) -> Receipt:
        return over(Receipt, await self.there.report(worker_id, [report_over(report) for report in reports]))

    async def release(self, worker_id: int, claims: Sequence[Claim]) -> set[int]:
        return over(set[int], await self.there.release(worker_id, over(list[Claim], list(claims))))

    async def hold(self, claim: Claim, tables: Sequence[str]) -> str:
        return await self.there.hold(over(Claim, claim), over(list[str], list(tables)))

    async def callback(self, claim: Claim, digest: str) -> str | None:
        return over(str | None, await self.there.callback(over(Claim, claim), over(str, digest)))

    async def recall(self, claim: Claim, key: CacheKey) -> CacheAnswer:
        return over(CacheAnswer, await self.there.recall(over(Claim, claim), over(CacheKey, key)))

    async def slots(self) -> int:
        return await self.there.slots()

    async def let_go(self, worker_id: int, runs: Sequence[tuple[int, int]]) -> None:
        await self.there.let_go(worker_id, over(list[tuple[int, int]], list(runs)))

    async def reconcile(self, job_id: int | None = None) -> float | None:
        return await self.there.reconcile(job_id)

    async def grant_ids(self) -> None:
        await self.there.grant_ids()

    async def wait_for_hints(self, timeout_s: float) -> frozenset[str]:
        return over(frozenset[str], await self.there.wait_for_hints(timeout_s))

    async def reserve(self, job_id: int, worker_id: int) -> None:
        await self.there.reserve(job_id, worker_id)

    async def job(self, job_id: int) -> Job | None:
        return await self.there.job(job_id)

    async def cancel(self, job_id: int) -> bool:
        return await self.there.cancel(job_id)
