"""Which runs hold resources: with their claim, without it while their body may go on, or by mistake."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, exists, literal, select

from aaiclick.orchestration.models import WorkerStatus
from aaiclick.orchestration.rules.states import RunOutcome
from aaiclick.orchestration.store.definitions.fleet_tables import resource_grants
from aaiclick.orchestration.store.dialects.table_moves import Key
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, runs, workers

KEPT = frozenset({RunOutcome.CANCELLED, RunOutcome.CLEARED, RunOutcome.REPAIRED})
"""Outcomes of runs whose bodies may go on: they occupy what they were granted until their worker says otherwise."""


def is_claimed() -> ColumnElement[bool]:
    """Return the condition that the run of a grant has its claim."""
    grants = resource_grants.c
    return exists().where(
        claims.c.worker_id == grants.worker_id, claims.c.task_id == grants.task_id, claims.c.epoch == grants.epoch
    )


def is_stray() -> ColumnElement[bool]:
    """Return the condition that a grant has no claim and no live worker: its body ended with the session."""
    alive = exists().where(workers.c.id == resource_grants.c.worker_id, workers.c.status != WorkerStatus.STOPPED)
    return and_(~alive, ~is_claimed())


def is_leaked() -> ColumnElement[bool]:
    """Return the condition that a grant should have been freed: its run has ended so that its body was dead."""
    grants = resource_grants.c
    over = exists().where(
        runs.c.task_id == grants.task_id, runs.c.epoch == grants.epoch, runs.c.outcome.not_in(sorted(KEPT))
    )
    return and_(over, ~is_claimed())


def strays() -> ColumnElement[bool]:
    """Return the condition that there is a stray grant."""
    return exists(select(literal(1)).select_from(resource_grants).where(is_stray()))


async def find_holders(session: Session, which: ColumnElement[bool], most: int) -> list[Key]:
    """Return up to so many runs that hold such grants."""
    grants = resource_grants.c
    chosen = select(grants.task_id, grants.epoch).where(which).distinct().limit(most)
    return [(row.task_id, row.epoch) for row in await session.rows(chosen)]


async def unlisted_holders(session: Session, worker_id: int, known_call: int) -> set[Key]:
    """Return runs that hold grants since a claim call of up to this number, and have no claim any more."""
    grants = resource_grants.c
    called = grants.claim_call.between(1, known_call)
    chosen = select(grants.task_id, grants.epoch).where(grants.worker_id == worker_id, called, ~is_claimed())
    return {(row.task_id, row.epoch) for row in await session.rows(chosen.distinct())}
