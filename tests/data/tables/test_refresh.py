"""What was asked of an Object that may be there, in a word."""

from __future__ import annotations

import pytest

from aaiclick.data.tables.refresh import Refresh
from aaiclick.errors import InputError


@pytest.mark.parametrize(
    ("asked", "operation"),
    [
        (Refresh(full_refresh=True), "full refresh"),
        (Refresh(full_refresh=True, incremental_by="at"), "full refresh"),
        (Refresh(incremental_by="at"), "incremental"),
        (Refresh(incremental_by="at", key="id"), "incremental"),
        (Refresh(incremental_by="at", partition=(1, 2)), "partition"),
        (Refresh(key="id"), "upsert"),
    ],
)
def test_an_operation_has_a_name(asked: Refresh, operation: str) -> None:
    asked.check("a")
    assert asked.operation == operation
    assert asked.is_asked
    with pytest.raises(InputError):
        asked.check(None)


def test_nothing_asked_is_nothing() -> None:
    assert not Refresh().is_asked
