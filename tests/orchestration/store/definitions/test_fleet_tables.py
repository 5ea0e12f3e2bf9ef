"""The tables of resources: what their keys and types allow."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.orchestration.store.definitions.fleet_tables import resource_grants, resource_units
from aaiclick.orchestration.store.rejections import is_duplicate
from aaiclick.orchestration.store.resources.grants import read_units
from tests.support.band import band
from tests.support.orchestra import Orchestra

__all__ = ["band"]

HELD: dict[str, Any] = {"task_id": 1, "epoch": 1, "scope": 0, "name": "seat", "slot": 0, "worker_id": 9}


async def test_a_run_holds_a_unit_once_and_as_much_as_there_may_be(band: Orchestra) -> None:
    most = 10**15
    unit = {"scope": 0, "name": "seat", "slot": 0, "size": most}
    await band.database.transact(lambda session: session.insert(resource_units, [unit]))
    await band.database.transact(lambda session: session.insert(resource_grants, [{**HELD, "amount": most}]))
    with pytest.raises(Exception) as refused:  # noqa: PT011 (each driver has its own)
        await band.database.transact(lambda session: session.insert(resource_grants, [{**HELD, "amount": 1}]))
    assert is_duplicate(refused.value)
    other = {**HELD, "epoch": 2, "amount": most}
    await band.database.transact(lambda session: session.insert(resource_grants, [other]))
    _, held = await band.database.read(read_units)
    assert held == {(0, "seat", 0): 2 * most}
