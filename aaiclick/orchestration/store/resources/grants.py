"""What runs hold of resources: granted in the transaction of the claim, and freed once the body is dead.

A capacity is never exceeded, since whoever grants holds the locks of its node and of the units of the installation, and
adds up what is held in a later statement. Freeing needs no lock: it only makes room.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from sqlalchemy import ColumnElement, and_, delete, exists, func, literal, select, tuple_

from aaiclick.orchestration.models import Claim, WorkerStatus
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
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, runs, workers

KEPT = frozenset({RunOutcome.CANCELLED, RunOutcome.CLEARED, RunOutcome.REPAIRED})
"""Outcomes of runs whose bodies may go on: they occupy what they were granted until their worker says otherwise."""

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
    return await free_grants(session, dead, resource_grants.c.worker_id == worker_id, ~_is_claimed())


async def unlisted_holders(session: Session, worker_id: int, known_call: int) -> set[Key]:
    """Return runs that hold grants since a claim call of up to this number, and have no claim any more."""
    grants = resource_grants.c
    called = grants.claim_call.between(1, known_call)
    chosen = select(grants.task_id, grants.epoch).where(grants.worker_id == worker_id, called, ~_is_claimed())
    return {(row.task_id, row.epoch) for row in await session.rows(chosen.distinct())}


def _is_claimed() -> ColumnElement[bool]:
    grants = resource_grants.c
    return exists().where(
        claims.c.worker_id == grants.worker_id, claims.c.task_id == grants.task_id, claims.c.epoch == grants.epoch
    )


# ---------------------------------------------------------------- grants that nobody frees


def _is_stray() -> ColumnElement[bool]:
    """Return the condition that a grant has no claim and no live worker: its body ended with the session."""
    alive = exists().where(workers.c.id == resource_grants.c.worker_id, workers.c.status != WorkerStatus.STOPPED)
    return and_(~alive, ~_is_claimed())


def strays() -> ColumnElement[bool]:
    """Return the condition that `free_strays` has something to do."""
    return exists(select(literal(1)).select_from(resource_grants).where(_is_stray()))


async def free_strays(session: Session) -> int:
    """Free what runs hold whose workers are gone; return the number of runs. An ended session never lives again."""
    return await _free_chosen(session, _is_stray())


def _is_leaked() -> ColumnElement[bool]:
    """Return the condition that a grant should have been freed: its run has ended so that its body was dead."""
    grants = resource_grants.c
    over = exists().where(
        runs.c.task_id == grants.task_id, runs.c.epoch == grants.epoch, runs.c.outcome.not_in(sorted(KEPT))
    )
    return and_(over, ~_is_claimed())


async def free_leaked(session: Session) -> list[Key]:
    """Free what is still held by runs that have ended; return these. This should never find anything."""
    found = await _some(session, _is_leaked())
    await free_grants(session, found, ~_is_claimed())
    return found


async def _free_chosen(session: Session, which: ColumnElement[bool]) -> int:
    found = await _some(session, which)
    await free_grants(session, found, ~_is_claimed())
    return len(found)


async def _some(session: Session, which: ColumnElement[bool]) -> list[Key]:
    grants = resource_grants.c
    chosen = select(grants.task_id, grants.epoch).where(which).distinct().limit(FREED_AT_ONCE)
    return [(row.task_id, row.epoch) for row in await session.rows(chosen)]
