"""What an error of the database means: it is there and says no, rather than being away or in a deadlock."""

from __future__ import annotations

from sqlalchemy.exc import DataError, IntegrityError

from aaiclick.errors import AaiclickError
from aaiclick.orchestration.store.dialects.contract import causes

REFUSALS = ("22", "23", "54")
"""Classes of SQLSTATE: data that is no such data, a constraint, a limit of the program."""

DUPLICATE = "23505"


def is_duplicate(error: BaseException) -> bool:
    """A primary key, a unique index or another constraint refused it; asyncpg's own error where rows were copied."""
    if isinstance(error, AaiclickError):  # somebody has said already what it means
        return False
    return any(isinstance(step, IntegrityError) or getattr(step, "sqlstate", "") == DUPLICATE for step in causes(error))


def is_rejected(error: BaseException) -> bool:
    """The database says no to what it was given, and would the next time."""
    return any(
        isinstance(step, DataError | IntegrityError)
        or type(step).__name__ in ("DataError", "IntegrityError")  # of a driver that was asked itself
        or str(getattr(step, "sqlstate", ""))[:2] in REFUSALS
        for step in causes(error)
    )
