"""Workers of nodes that have resources, and what tests ask of what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from aaiclick.orchestration.models import Claim
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.definitions.fleet_tables import resource_grants
from aaiclick.orchestration.store.resources.units import set_capacity
from aaiclick.orchestration.store.tables import tasks
from tests.support.orchestra import Orchestra, make

TWO_GPUS: dict[str, Any] = {"gpu": 2, "gpu_memory_mb": 10_000}
AGAIN = RetryPolicy(9, delay_s=0)


async def begin(band: Orchestra, name: str = "box", **resources: Any) -> int:
    """A worker of a node that has these, which claims from now on."""
    node = NodeDescription(name, resources=resources)
    band.worker = (await band.coordinator.register(hostname="h", pid=2, node=node)).id
    return band.worker


async def lanes_of(band: Orchestra) -> list[int]:
    return sorted({row.lane for row in await band.rows(select(tasks.c.lane))} - {0})


async def claim(band: Orchestra, limit: int = 9, **options: Any) -> list[Claim]:
    """Claim in all lanes that need something, as the coordinator does when it has forgotten all that it knew."""
    return await band.claim(limit, lanes=await lanes_of(band), begins=limit, **options)


async def held(band: Orchestra) -> dict[tuple[int, str], int]:
    """Who holds what: thousandths by task and name, GPUs by their index."""
    rows = await band.rows(select(resource_grants))
    return {(row.task_id, f"{row.name}{row.slot if row.name == 'gpu' else ''}"): row.amount for row in rows}


def devices(claimed: Sequence[Claim]) -> list[list[int]]:
    return [[grant.slot for grant in claim.grants if grant.name == "gpu"] for claim in claimed]


async def capacity(band: Orchestra, name: str, amount: float) -> None:
    await band.database.transact(lambda session: set_capacity(session, name, amount))


async def one(band: Orchestra, **options: Any) -> Claim:
    await begin(band, gpu=1)
    await band.submit(make("t", resources={"gpu": 1}, retry=AGAIN, **options), make("plain"))
    (taken,) = await claim(band)
    return taken
