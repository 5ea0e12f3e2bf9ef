"""The table `reconcilers`: how often each reconciler of the control loop ran, and how its runs ended.

Only the leader writes it. Each row has the term of the leader that wrote it last, and refuses writes of earlier terms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Column, Double, Row, String, bindparam, func, select, update

from aaiclick.orchestration.rules.reconcilers import ReconcilerRecord
from aaiclick.orchestration.store.definitions.column_types import UtcTime
from aaiclick.orchestration.store.definitions.common_columns import table
from aaiclick.orchestration.store.insert_missing import insert_missing
from aaiclick.orchestration.store.session import Session

TROUBLE_LENGTH_MAX = 400

reconcilers = table(
    "reconcilers",
    Column("name", String(100), primary_key=True),
    Column("term", BigInteger, nullable=False),
    Column("runs", BigInteger, nullable=False),
    Column("done", BigInteger, nullable=False),
    Column("failures", BigInteger, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("ran_at", UtcTime),
    Column("trouble", String(TROUBLE_LENGTH_MAX)),
    Column("trouble_at", UtcTime),
)


class Account(NamedTuple):
    """Totals of one reconciler's runs: their number, work done, failures, seconds taken.

    `ran_s_ago` and `trouble_s_ago` are the ages of the last run and of the last failure; None leaves the stored time.
    """

    runs: int = 0
    done: int = 0
    failures: int = 0
    seconds: float = 0.0
    ran_s_ago: float | None = None
    trouble: str | None = None
    trouble_s_ago: float | None = None


_WRITE = (
    update(reconcilers)
    .where(reconcilers.c.name == bindparam("whose"), reconcilers.c.term <= bindparam("by", type_=BigInteger))
    .values(
        runs=bindparam("all_runs"),
        done=bindparam("all_done"),
        failures=bindparam("all_failures"),
        seconds=bindparam("all_seconds"),
        ran_at=func.coalesce(bindparam("last_ran_at", type_=UtcTime), reconcilers.c.ran_at),
        trouble=func.coalesce(bindparam("last_trouble", type_=String), reconcilers.c.trouble),
        trouble_at=func.coalesce(bindparam("last_trouble_at", type_=UtcTime), reconcilers.c.trouble_at),
    )
)


async def take_over(session: Session, term: int, names: Sequence[str]) -> dict[str, Account]:
    """Set the term on the rows of these reconcilers, so that earlier leaders cannot write them any more.

    Missing rows are added. Return the stored counts by name.
    """
    known = [{"name": name, "term": term, "runs": 0, "done": 0, "failures": 0, "seconds": 0.0} for name in names]
    await insert_missing(session, reconcilers, known)
    mine = (reconcilers.c.name.in_(names), reconcilers.c.term <= term)
    await session.run(update(reconcilers).where(*mine).values(term=term))
    rows = await session.rows(select(reconcilers).where(*mine))
    return {row.name: Account(row.runs, row.done, row.failures, row.seconds) for row in rows}


async def write(session: Session, term: int, accounts: Mapping[str, Account]) -> None:
    """Replace the stored totals by these; a repeated call changes nothing. Rows of a later term are left alone."""
    now = await session.now()

    def ago(seconds: float | None) -> Any:
        return None if seconds is None else now - timedelta(seconds=seconds)

    rows = [
        {
            "whose": name,
            "by": term,
            "all_runs": account.runs,
            "all_done": account.done,
            "all_failures": account.failures,
            "all_seconds": account.seconds,
            "last_ran_at": ago(account.ran_s_ago),
            "last_trouble": account.trouble,
            "last_trouble_at": ago(account.trouble_s_ago),
        }
        for name, account in sorted(accounts.items())
    ]
    await session.run_many(_WRITE, rows)


async def read_reconcilers(session: Session) -> list[ReconcilerRecord]:
    """Return the rows that the newest leader owns, by name.

    Reconcilers that only another version of aaiclick has keep an older term, and are left out.
    """
    newest = select(func.max(reconcilers.c.term)).scalar_subquery()
    asked = select(reconcilers, session.dialect.now().label("now")).where(reconcilers.c.term == newest)
    return [_record(row) for row in await session.rows(asked.order_by(reconcilers.c.name))]


def _record(row: Row[Any]) -> ReconcilerRecord:
    return ReconcilerRecord(
        name=row.name,
        runs=row.runs,
        done=row.done,
        failures=row.failures,
        seconds=row.seconds,
        ran_at=row.ran_at,
        ran_s_ago=None if row.ran_at is None else max(0.0, (row.now - row.ran_at).total_seconds()),
        trouble=row.trouble,
        trouble_at=row.trouble_at,
    )
