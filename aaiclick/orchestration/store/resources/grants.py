"""What runs hold of resources: granted in the transaction of the claim, and freed once the body is dead.

A capacity is never exceeded, since whoever grants holds the locks of its node and of the units of the installation, and
adds up what is held in a later statement. Freeing needs no lock: it only makes room.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from sqlalchemy import ColumnElement, and_, delete, func, select, tuple_

from aaiclick.orchestration.models import Claim
from aaiclick.orchestration.rules.naming.hints import FREED
from aaiclick.orchestration.rules.resources import (
    ON_NODES,
    WORLD,
    Granted,
    Place,
    Unit,
    choose,
    unit_names,
)
from aaiclick.orchestration.rules.states import RunOutcome
from aaiclick.orchestration.store.definitions.fleet_tables import nodes, resource_grants, resource_units
from aaiclick.orchestration.store.dialects.contract import EndedClaim
from aaiclick.orchestration.store.dialects.table_moves import Key
from aaiclick.orchestration.store.object_tables.references import in_batches
from aaiclick.orchestration.store.resources.holders import KEPT, find_holders, is_claimed, is_leaked, is_stray
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import workers

FREED_AT_ONCE = 500
_GRANTED = tuple(resource_grants.c[name] for name in Granted._fields)


# ---------------------------------------------------------------- granting


async def plan_grants(
    session: Session, worker_id: int, resources: Mapping[str, float], most: int
) -> list[list[Granted]]:
    """Lock the units that a worker could be granted, and return what up to `most` tasks would get of them.

    This comes before the claim, since units are locked before tasks. In a session without a transaction the locks
    would be gone at once, and the plan worth nothing.
    """
    names = unit_names(resources)
    node_id = await _lock_node(session, worker_id)
    locked = await _lock_shared(session, [name for name in names if name not in ON_NODES])
    units, held = await read_units(session, [WORLD, *([] if node_id is None else [node_id])], names)
    certain = [unit for unit in units if unit.scope != WORLD or unit.name in locked]
    return choose(resources, certain, held, most)


async def _lock_node(session: Session, worker_id: int) -> int | None:
    mine = select(workers.c.node_id).where(workers.c.id == worker_id).scalar_subquery()
    row = await session.first(select(nodes.c.id).where(nodes.c.id == mine).with_for_update())
    return None if row is None else int(row.id)


async def _lock_shared(session: Session, names: Sequence[str]) -> set[str]:
    """Lock the capacities of the installation of these names, and return the names of those that there are.

    One that is set after this is not locked, and therefore not granted of.
    """
    if not names:
        return set()
    world = (resource_units.c.scope == WORLD, resource_units.c.name.in_(names))
    chosen = select(resource_units.c.name).where(*world).order_by(resource_units.c.name).with_for_update()
    return {row.name for row in await session.rows(chosen)}


async def read_units(
    session: Session, scopes: Sequence[int] | None = None, names: Sequence[str] | None = None
) -> tuple[list[Unit], dict[Place, int]]:
    """Return units in the order of their keys, and how much of each is held, both as of one statement."""
    unit, grant = resource_units.c, resource_grants.c
    theirs = (grant.scope == unit.scope, grant.name == unit.name, grant.slot == unit.slot)
    held = select(func.coalesce(func.sum(grant.amount), 0)).where(*theirs).scalar_subquery()
    chosen = select(*(unit[name] for name in Unit._fields), held.label("held"))
    if scopes is not None:
        chosen = chosen.where(unit.scope.in_(scopes))
    if names is not None:
        chosen = chosen.where(unit.name.in_(names))
    rows = await session.rows(chosen.order_by(unit.scope, unit.name, unit.slot))
    units = [Unit._make(row[:-1]) for row in rows]
    return units, {unit[:3]: int(row.held) for unit, row in zip(units, rows, strict=True)}


async def could_grant(session: Session, node_ids: Collection[int], resources: Mapping[str, float]) -> bool:
    """Return whether one of these nodes could be granted this now, as of one statement. Nothing is locked."""
    units, held = await read_units(session, [WORLD, *node_ids], unit_names(resources))
    shared = [unit for unit in units if unit.scope == WORLD]
    own: dict[int, list[Unit]] = {}
    for unit in units:
        own.setdefault(unit.scope, []).append(unit)
    offers = [shared + own[node] for node in node_ids if node in own]
    if len(offers) < len(node_ids):
        offers.append(shared)
    return any(choose(resources, offer, held, 1) for offer in offers)


async def grant(
    session: Session, taken: Sequence[Claim], planned: Sequence[Sequence[Granted]], call: int
) -> list[Claim]:
    """Store what was planned for these claims, which were made in this transaction; return them with their grants."""
    granted = [replace(claim, grants=list(grants)) for claim, grants in zip(taken, planned, strict=False)]
    rows = [
        {
            "task_id": claim.task_id,
            "epoch": claim.epoch,
            **each._asdict(),
            "worker_id": claim.worker_id,
            "claim_call": call,
        }
        for claim in granted
        for each in claim.grants
    ]
    await session.insert(resource_grants, rows)
    return granted


async def with_grants(session: Session, found: Sequence[Claim]) -> list[Claim]:
    """Return claims that were made before with what was granted with them."""
    ids = sorted(claim.task_id for claim in found if claim.lane)
    if not ids:
        return [*found]
    chosen = select(resource_grants.c.task_id, resource_grants.c.epoch, *_GRANTED)
    held: dict[Key, list[Granted]] = {}
    for row in await session.rows(chosen.where(session.any_of(resource_grants.c.task_id, ids))):
        held.setdefault((row.task_id, row.epoch), []).append(Granted._make(row[2:]))
    return [replace(claim, grants=sorted(held.get((claim.task_id, claim.epoch), ()))) for claim in found]


# ---------------------------------------------------------------- freeing


async def free_ended(session: Session, ended: Iterable[EndedClaim]) -> None:
    """Free what runs held whose claims end now, and whose bodies are dead by that.

    Completed ones are freed by whoever completes them, who knows which of them are of tasks that need something.
    """
    still = KEPT | {RunOutcome.COMPLETED}
    await free_grants(session, [(claim.task_id, claim.epoch) for claim in ended if claim.outcome not in still])


async def free_grants(session: Session, dead: Sequence[Key], *which: ColumnElement[bool]) -> int:
    """Free what these runs hold, and return how many grants that were; `which` are further conditions."""
    freed = 0
    grants = resource_grants.c
    for batch in in_batches(sorted(set(dead)), FREED_AT_ONCE):
        theirs = session.any_of(grants.task_id, sorted({task for task, _ in batch}))  # lets MariaDB use an index
        theirs = and_(theirs, tuple_(grants.task_id, grants.epoch).in_(batch))
        freed += await session.run(delete(resource_grants).where(theirs, *which))
    if freed:
        session.hints.add(FREED)
    return freed


async def free_dead(session: Session, worker_id: int, dead: Sequence[Key]) -> int:
    """Free what runs of this worker hold whose bodies it says to be dead; while a claim lives, it holds."""
    return await free_grants(session, dead, resource_grants.c.worker_id == worker_id, ~is_claimed())


# ---------------------------------------------------------------- grants that nobody frees


async def free_strays(session: Session) -> int:
    """Free what runs hold whose workers are gone; return the number of runs. An ended session never lives again."""
    found = await find_holders(session, is_stray(), FREED_AT_ONCE)
    await free_grants(session, found, ~is_claimed())
    return len(found)


async def free_leaked(session: Session) -> list[Key]:
    """Free what is still held by runs that have ended; return these. This should never find anything."""
    found = await find_holders(session, is_leaked(), FREED_AT_ONCE)
    await free_grants(session, found, ~is_claimed())
    return found
