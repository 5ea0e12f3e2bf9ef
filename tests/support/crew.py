"""Claimers and completers over one database, each with a connection of its own, some in a process of their own.

Run as a module it is the crew of another process: it works until the jobs have ended and prints what it did.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field

from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.gathering import gather
from aaiclick.orchestration.models import Claim, Report
from aaiclick.orchestration.rules.states import ENDED_JOB
from aaiclick.orchestration.store.database import Database
from tests.support import warm
from tests.support.orchestra import done, failure, make

BEAT_EVERY_S = 3.0


@dataclass
class Deeds:
    """What a crew did."""

    claimed: list[tuple[int, int]] = field(default_factory=list)
    released: int = 0
    refused: int = 0
    tried_again: int = 0
    """Transactions that met a deadlock, which no caller has seen."""


@dataclass
class Crew:
    """Some claimers that hand what they claim to some completers."""

    url: str
    job_ids: list[int]
    claimers: int
    completers: int
    seed: int
    deeds: Deeds = field(default_factory=Deeds)
    taken: asyncio.Queue[Claim] = field(default_factory=lambda: asyncio.Queue(maxsize=200))
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def work(self) -> Deeds:
        """Work until the jobs have ended; raises what anyone met."""
        async with AsyncExitStack() as opened, asyncio.TaskGroup() as together:
            for number in range(self.claimers + self.completers):
                coordinator = await opened.enter_async_context(self.connected())
                dice = random.Random(f"{self.seed} {number}")
                role = self.claim if number < self.claimers else self.complete
                together.create_task(role(coordinator, dice))
            together.create_task(self.reconcile(await opened.enter_async_context(self.connected())))
        return self.deeds

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[DirectCoordinator]:
        database = await Database.open(self.url)
        asked = database.dialect.is_transient

        def counted(error: BaseException) -> bool:
            transient = asked(error)
            self.deeds.tried_again += transient
            return transient

        database.dialect.is_transient = counted  # type: ignore[method-assign]
        try:
            yield DirectCoordinator(database, draw=lambda: 0.0)
        finally:
            await database.close()

    async def claim(self, coordinator: DirectCoordinator, dice: random.Random) -> None:
        worker = (await coordinator.register(hostname="crew", pid=self.seed + 1)).id
        beating = asyncio.create_task(self.beat(coordinator, worker))
        try:
            await self.claim_for(worker, coordinator, dice)
        finally:
            beating.cancel()

    async def beat(self, coordinator: DirectCoordinator, worker: int) -> None:
        """Keep the session: a long run lasts longer than one."""
        while True:
            await asyncio.sleep(BEAT_EVERY_S)
            await coordinator.beat(worker)

    async def claim_for(self, worker: int, coordinator: DirectCoordinator, dice: random.Random) -> None:
        while not self.ended.is_set():
            claims = await coordinator.claim(worker, limit=dice.choice([1, 3, 10, 30]))
            self.deeds.claimed += [(claim.task_id, claim.epoch) for claim in claims]
            for claim in claims:
                await self.taken.put(claim)
            if not claims:
                await asyncio.sleep(0.01)

    async def reconcile(self, coordinator: DirectCoordinator) -> None:
        """Do what control will do, and notice the end."""
        while not self.ended.is_set():
            await coordinator.reconcile()
            found = [await coordinator.job(job_id) for job_id in self.job_ids]
            if all(job is not None and job.status in ENDED_JOB for job in found):
                self.ended.set()
            await asyncio.sleep(0.02)

    async def complete(self, coordinator: DirectCoordinator, dice: random.Random) -> None:
        while not self.ended.is_set() or not self.taken.empty():
            batch = [self.taken.get_nowait() for _ in range(min(self.taken.qsize(), dice.choice([1, 2, 5, 20])))]
            if not batch:
                await asyncio.sleep(0.002)
            for worker in {claim.worker_id for claim in batch}:
                await self.settle(coordinator, worker, [claim for claim in batch if claim.worker_id == worker], dice)

    async def settle(
        self, coordinator: DirectCoordinator, worker: int, batch: list[Claim], dice: random.Random
    ) -> None:
        """Report these runs; now and then one is given back, and one brings new tasks."""
        if dice.random() < 0.05:
            given_back = batch.pop()
            self.deeds.released += len(await coordinator.release(worker, [given_back]))
        for claim in batch:
            if claim.name.startswith("grows"):
                new = [make("grown", group_id=claim.group_id) for _ in range(2)]
                await coordinator.submit(gather(claim.job_id, new))
        if batch:
            receipt = await coordinator.report(worker, [outcome(claim) for claim in batch])
            self.deeds.refused += len(batch) - len(receipt.accepted)


def outcome(claim: Claim) -> Report:
    """What a task comes to is in its name."""
    if claim.name.startswith("bad") or (claim.name.startswith("flaky") and claim.attempt == 0):
        return failure(claim)
    return done(claim, f'"{claim.name}"')


async def other_process(url: str, job_ids: list[int], claimers: int, completers: int, seed: int) -> Deeds:
    """The same in a process of its own."""
    asked = json.dumps([url, job_ids, claimers, completers, seed])
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("AAICLICK_TEST_")}
    process = await warm.create_subprocess_exec(
        sys.executable, "-m", "tests.support.crew", asked, stdout=asyncio.subprocess.PIPE, env=surroundings
    )
    try:
        told, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0
    facts = json.loads(told)
    return Deeds(**{**facts, "claimed": [tuple(each) for each in facts["claimed"]]})


def twice(deeds: list[Deeds]) -> list[tuple[int, int]]:
    """Runs that were handed out more than once."""
    counted = Counter(run for each in deeds for run in each.claimed)
    return [run for run, count in counted.items() if count > 1]


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(Crew(*json.loads(sys.argv[1])).work()))))
