"""Writing entries of the job catalogue. If two processes insert one name at once, a unique index refuses one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aaiclick.errors import Conflict
from aaiclick.orchestration.models import RegisteredJob
from aaiclick.orchestration.rules.placement import lane_needs
from aaiclick.orchestration.rules.validation import shorten
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.lanes import intern_lanes
from aaiclick.orchestration.store.rejections import is_duplicate
from aaiclick.orchestration.store.schedules import registered_jobs as store


async def add_registered_job(database: Database, facts: Mapping[str, Any]) -> RegisteredJob:
    """Insert an entry. Raises Conflict if the name is taken."""
    await _make_lanes(database, facts)
    try:
        return await database.transact(lambda session: store.add_registered_job(session, facts))
    except Exception as error:
        if not is_duplicate(error):
            raise
    raise Conflict(
        what=f"Registered job {shorten(facts['name'])}",
        verb="registered",
        cause="a registered job has that name already",
        hint="Change it with upsert_registered_job.",
    )


async def upsert_registered_job(database: Database, facts: Mapping[str, Any]) -> RegisteredJob:
    """Insert an entry, or update the entry of that name with these facts. Without `enabled`, that stays as stored."""
    await _make_lanes(database, facts)
    try:
        return await database.transact(lambda session: store.upsert_registered_job(session, facts))
    except Exception as error:
        if not is_duplicate(error):
            raise
    # another process has inserted it meanwhile
    return await database.transact(lambda session: store.upsert_registered_job(session, facts))


async def _make_lanes(database: Database, facts: Mapping[str, Any]) -> None:
    """Make the lanes of an entry's runs, so that firing it finds them."""
    needs = [lane_needs(facts.get("placement") or "", entrypoint) for entrypoint in ("", facts.get("entrypoint", ""))]
    if any(needs):
        await database.transact(lambda session: intern_lanes(session, needs))
