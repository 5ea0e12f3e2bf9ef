"""Errors by which the database refuses data, as opposed to being unreachable or in a deadlock."""

from __future__ import annotations

from sqlalchemy.exc import DataError, IntegrityError

from aaiclick.errors import AaiclickError
from aaiclick.orchestration.store.dialects.contract import causes

REFUSALS = ("22", "23", "54")
"""Classes of SQLSTATE: data exception, constraint violation, program limit exceeded."""

DUPLICATE = "23505"


def is_duplicate(error: BaseException) -> bool:
    """Return whether a primary key, a unique index or another constraint refused a row.

    Where rows were copied, the error is asyncpg's own, and only its SQLSTATE tells.
    """
    if isinstance(error, AaiclickError):  # already translated
        return False
    return any(isinstance(step, IntegrityError) or getattr(step, "sqlstate", "") == DUPLICATE for step in causes(error))


def is_rejected(error: BaseException) -> bool:
    """Return whether the database refused what it was given, and would refuse it again."""
    return any(
        isinstance(step, DataError | IntegrityError)
        or type(step).__name__ in ("DataError", "IntegrityError")  # raised by a driver that was called directly
        or str(getattr(step, "sqlstate", ""))[:2] in REFUSALS
        for step in causes(error)
    )
