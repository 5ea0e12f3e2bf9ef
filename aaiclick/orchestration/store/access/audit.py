"""The audit log: an entry is written before each change from outside, and its outcome is added afterwards."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select, update

from aaiclick.ids import new_id
from aaiclick.orchestration.models.token import AuditEntry
from aaiclick.orchestration.store.definitions.access_tables import audit, tokens
from aaiclick.orchestration.store.session import Session


async def add_entry(
    session: Session, *, actor_id: int | None, actor: str, verb: str, target: str, outcome: str | None = None
) -> int:
    """Insert an entry for a change that is about to be made; return its id."""
    entry = AuditEntry(new_id(), await session.now(), actor_id, actor, verb, target, outcome)
    await session.insert(audit, [{field: getattr(entry, field) for field in AuditEntry.__slots__}])
    return entry.id


async def end_entry(session: Session, entry_id: int, outcome: str, target: str | None = None) -> None:
    """Write the outcome of a change; `target` replaces the stored one, for things that get their id by the change."""
    more = {} if target is None else {"target": target}
    await session.run(update(audit).where(audit.c.id == entry_id).values(outcome=outcome, **more))


async def list_entries(session: Session, before: int | None, limit: int) -> list[AuditEntry]:
    """Return entries, newest first; with `before`, only those with a smaller id."""
    choice = select(audit).order_by(audit.c.id.desc()).limit(limit)
    if before is not None:
        choice = choice.where(audit.c.id < before)
    return [AuditEntry.from_row(row) for row in await session.rows(choice)]


async def was_done_by_node(
    session: Session, target: str, verb: str, node_id: int, outcomes: Collection[str | None]
) -> bool:
    """Return whether there is an entry of this verb and target, with one of these outcomes, by a token of the node."""
    mine = select(tokens.c.id).where(tokens.c.node_id == node_id)
    which = (audit.c.target == target, audit.c.verb == verb, audit.c.actor_id.in_(mine))
    rows = await session.rows(select(audit.c.outcome).where(*which))
    return any(row.outcome in outcomes for row in rows)
