"""The coordinator's verbs, asked of a server; `contract` describes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from aaiclick.id_grants import Grant
from aaiclick.ids import granted_until_ms, new_id, offer_grant, tell_time
from aaiclick.orchestration.coordinator.http import protocol
from aaiclick.orchestration.coordinator.http.calls import LONG_S_MAX, Calls
from aaiclick.orchestration.coordinator.http.credentials import Credentials
from aaiclick.orchestration.coordinator.http.protocol import (
    HELD_S_MAX,
    AskIds,
    AwaitCallback,
    Beat,
    Claimed,
    ClaimTasks,
    GrantedIds,
    Hear,
    Heard,
    HoldTables,
    OfWorker,
    Ordered,
    RecallResult,
    Receipted,
    Reconcile,
    Register,
    Reports,
    Runs,
)
from aaiclick.orchestration.models import (
    CacheAnswer,
    CacheKey,
    Claim,
    Done,
    Failure,
    Held,
    Orders,
    Receipt,
    Report,
    Worker,
)
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.lanes import PLAIN

REPORT_BYTES_MAX = 4_000_000
"""About how many bytes of results go in one call."""

IDS_S_MAX = 10.0
"""The timeout of a call for ids, which tells the time, too: an answer that comes late says little."""

SETTLE_S = 0.05
"""Seconds until hints are asked for by a call of their own, when no claim is held that would bring them."""


class HttpCoordinator:
    """Implements `Coordinator` on a server. Each event loop has its own."""

    def __init__(self, calls: Calls, credentials: Credentials | None = None) -> None:
        self.calls = calls
        self._credentials = credentials
        self._since = ""
        """The place on the server's board of hints up to which they were heard."""
        self._heard: set[str] = set()
        self._held = 0
        """Claims that the server holds at present: their answers bring hints too."""
        self._something = asyncio.Event()

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
        made = worker_id or new_id()
        said: dict[str, Any] = {"hostname": hostname, "pid": pid, "name": name, "concurrency": concurrency}
        asked = Register(worker=made, node=node, **said)
        return await self.calls.ask("register", asked, Worker)

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
        asked = Beat(
            worker=worker_id,
            known_call=known_call,
            held=None if held is None else list(held),
            completed=completed,
            failed=failed,
            unreported_s=unreported_s,
            renew="" if self._credentials is None else self._credentials.due_digest(),
        )
        told = await self.calls.ask("beat", asked, Ordered)
        if told.token is not None and self._credentials is not None:
            self._credentials.take(told.token)
        if told.alive:
            renewed()
        return Orders(told.alive, told.drain, {(task, epoch): why for task, epoch, why in told.stop})

    async def deregister(self, worker_id: int) -> bool:
        return await self.calls.ask("deregister", OfWorker(worker=worker_id), bool)

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
        asked = ClaimTasks(
            worker=worker_id,
            limit=limit,
            reserved_for=reserved_for,
            lanes=None if lanes is None else tuple(lanes),
            call=call,
            begins=begins,
            wait_s=min(wait_s, HELD_S_MAX),
            since=self._since,
            again=again,
        )
        self._held += wait_s > 0
        try:
            answer = await self.calls.ask("claim", asked, Claimed)
        finally:
            self._held -= wait_s > 0
            self._something.set()
        if wait_s > 0:
            self._hear(answer.hints, answer.since)
        return [_claim(each, answer, worker_id) for each in answer.claims]

    async def report(self, worker_id: int, reports: Sequence[Report]) -> Receipt:
        receipt = Receipt()
        for batch in _batches(reports):
            done = [report for report in batch if isinstance(report, Done)]
            failed = [report for report in batch if isinstance(report, Failure)]
            asked = Reports(worker=worker_id, done=done, failed=failed)
            told = await self.calls.ask("report", asked, Receipted, within_s=LONG_S_MAX)
            receipt.accepted.update(told.accepted)
            receipt.conflicts.update(told.conflicts)
            waits = [wait for wait in (receipt.due_s, told.due_s) if wait is not None]
            receipt.due_s = min(waits, default=None)
        return receipt

    async def release(self, worker_id: int, claims: Sequence[Claim]) -> set[int]:
        runs = [(claim.task_id, claim.epoch) for claim in claims]
        return await self.calls.ask("release", Runs(worker=worker_id, runs=runs), set[int])

    async def hold(self, claim: Claim, tables: Sequence[str]) -> str:
        run = (claim.task_id, claim.epoch)
        asked = HoldTables(worker=claim.worker_id, task_id=run[0], epoch=run[1], tables=list(tables))
        return await self.calls.ask("hold", asked, str)

    async def recall(self, claim: Claim, key: CacheKey) -> CacheAnswer:
        run = (claim.task_id, claim.epoch)
        asked = RecallResult(worker=claim.worker_id, task_id=run[0], epoch=run[1], key=key)
        return await self.calls.ask("recall", asked, CacheAnswer)

    async def slots(self) -> int:
        return await self.calls.ask("slots", protocol.Ask(), int)

    async def callback(self, claim: Claim, digest: str) -> str | None:
        asked = AwaitCallback(
            worker=claim.worker_id,
            task_id=claim.task_id,
            epoch=claim.epoch,
            generation=claim.generation,
            digest=digest,
        )
        return await self.calls.ask("callback", asked, str | None)  # type: ignore[arg-type]

    async def let_go(self, worker_id: int, runs: Sequence[tuple[int, int]]) -> None:
        await self.calls.ask("let_go", Runs(worker=worker_id, runs=list(runs)), type(None))

    async def reconcile(self, job_id: int | None = None) -> float | None:
        return await self.calls.ask("reconcile", Reconcile(job_id=job_id), float | None)  # type: ignore[arg-type]

    async def grant_ids(self) -> None:
        """Obtain a grant, unless more than half of the last one is left, and learn the time."""
        asked_at_s = self.calls.clock.monotonic()
        told = await self.calls.ask("ids", AskIds(until_ms=granted_until_ms()), GrantedIds, within_s=IDS_S_MAX)
        tell_time(told.now_ms, asked_at_s)
        if told.machine_id is not None:
            offer_grant(Grant(told.machine_id, told.from_ms, told.until_ms))

    async def wait_for_hints(self, timeout_s: float) -> frozenset[str]:
        deadline = self.calls.clock.monotonic() + timeout_s
        while not self._heard and (left_s := deadline - self.calls.clock.monotonic()) > 0:
            if not self._held:
                await asyncio.sleep(min(SETTLE_S, left_s))  # an idle worker claims again at once
            if not self._held:
                heard = await self.calls.ask("hints", Hear(wait_s=min(left_s, HELD_S_MAX), since=self._since), Heard)
                self._hear(heard.hints, heard.since)
                continue
            self._something.clear()  # the answer to the claim that the server holds brings them
            try:
                async with asyncio.timeout(left_s):
                    await self._something.wait()
            except TimeoutError:
                break
        heard_now, self._heard = frozenset(self._heard), set()
        return heard_now

    def _hear(self, hints: Sequence[str], since: str) -> None:
        self._heard.update(hints)
        self._since = since
        self._something.set()

    def close(self) -> None:
        """Close all connections."""
        self.calls.close()


def _claim(sent: protocol.SentClaim, answer: Claimed, worker_id: int) -> Claim:
    given = protocol.Given({}) if sent.given is None else answer.given[sent.given]
    return Claim(
        task_id=sent.task_id,
        epoch=sent.epoch,
        worker_id=worker_id,
        job_id=sent.job_id,
        group_id=sent.group_id,
        name=sent.name,
        entrypoint=sent.entrypoint,
        kwargs_json=sent.kwargs_json,
        attempt=sent.attempt,
        timeout_s=sent.timeout_s,
        priority=sent.priority,
        inputs=given.inputs,
        members=given.members,
        outputs=given.outputs,
        generation=sent.generation,
        stop_when_cut_off=sent.stop_when_cut_off,
        cache_policy=sent.cache_policy,
        registered=sent.registered,
        installation=sent.installation,
        lane=sent.lane,
    )


def _batches(reports: Sequence[Report]) -> list[list[Report]]:
    """Divide reports into calls of at most about `REPORT_BYTES_MAX`; a large one goes alone."""
    found: list[list[Report]] = []
    room = 0
    for report in reports:
        size = _size(report)
        if not found or size > room:
            found.append([])
            room = REPORT_BYTES_MAX
        found[-1].append(report)
        room -= size
    return found


def _size(report: Report) -> int:
    if isinstance(report, Failure):
        return len(report.error) + len(report.traceback or "") + 200
    children = 0 if report.children is None else sum(len(task.kwargs_json) + 300 for task in report.children.tasks)
    return len(report.result_json) + children + 200
