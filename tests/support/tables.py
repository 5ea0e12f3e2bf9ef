"""Object tables for store tests: names, results that refer to them, and who refers to which."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from aaiclick.orchestration.models import Claim, Done, Failure
from aaiclick.orchestration.rules.values.encoding import encode_value
from aaiclick.orchestration.rules.values.run_tables import run_table
from aaiclick.orchestration.store.retention import table_drops
from aaiclick.orchestration.store.tables import table_context_refs, table_pin_refs, table_run_refs
from tests.support.orchestra import Orchestra, failure


class Table:
    """Stands for an Object in a result."""

    def __init__(self, name: str) -> None:
        self.name = name


def result_of(*names: str) -> str:
    """The text of a result that refers to these tables."""

    def mark(value: object) -> tuple[str, object] | None:
        return ("object", {"table": value.name}) if isinstance(value, Table) else None

    values = [Table(name) for name in names]
    return encode_value(values[0] if len(values) == 1 else values, bytes_max=10**6, mark=mark)


def table_of(claim: Claim, number: int = 1) -> str:
    return run_table(claim.task_id, claim.epoch, number)


async def hold(band: Orchestra, claim: Claim, *, outputs: int = 1) -> list[str]:
    """Hold so many tables of the run's own."""
    mine = [table_of(claim, number) for number in range(1, outputs + 1)]
    await band.coordinator.hold(claim, mine)
    return mine


def returned(claim: Claim, *names: str, **facts: Any) -> Done:
    """A report of a run that used tables and returned these."""
    return Done(claim.task_id, claim.epoch, result_of(*names) if names else "null", holds=True, **facts)


def failed(claim: Claim, **facts: Any) -> Failure:
    return failure(claim, holds=True, **facts)


async def registered(band: Orchestra) -> set[str]:
    """The tables that are known and not as good as gone."""
    rows = await band.rows(select(table_context_refs).where(~table_context_refs.c.dropping))
    return {row.table_name for row in rows}


async def run_refs(band: Orchestra) -> set[tuple[int, int, str]]:
    rows = await band.rows(select(table_run_refs).where(~table_run_refs.c.freed))
    return {(row.task_id, row.epoch, row.table_name) for row in rows}


async def pins(band: Orchestra) -> set[tuple[int, str]]:
    rows = await band.rows(select(table_pin_refs).where(~table_pin_refs.c.freed))
    return {(row.task_id, row.table_name) for row in rows}


async def look(band: Orchestra) -> None:
    """As whoever leads does, but for the dropping itself."""
    while await band.database.transact(table_drops.mark_unneeded):
        pass


async def drop(band: Orchestra) -> set[str]:
    """Look, and drop what may go; gives it."""
    await look(band)
    gone = await band.database.read(table_drops.next_to_drop)
    await band.database.transact(lambda session: table_drops.forget_tables(session, gone))
    return set(gone)


async def references_left(band: Orchestra) -> int:
    """All rows of all three tables."""
    return sum([len(await band.rows(select(table))) for table in (table_context_refs, table_run_refs, table_pin_refs)])
