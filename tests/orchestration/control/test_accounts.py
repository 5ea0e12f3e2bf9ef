"""How often each reconciler ran, under whoever led."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.orchestration.control.accounts import Accounts
from aaiclick.orchestration.rules.reconcilers import ReconcilerRecord
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.leases.reconcilers import TROUBLE_LENGTH_MAX, read_reconcilers
from aaiclick.telemetry import masks
from tests.support.band import band
from tests.support.clocks import HandClock
from tests.support.orchestra import Orchestra

__all__ = ["band"]

NAMES = ["a", "b"]


async def record(band: Orchestra, name: str = "a") -> ReconcilerRecord:
    (found,) = [each for each in await band.database.read(read_reconcilers) if each.name == name]
    return found


async def test_runs_are_counted_and_written_together(band: Orchestra) -> None:
    clock = HandClock()
    accounts = Accounts(band.database, NAMES, clock)
    accounts.note("a", 2, 0.5)
    accounts.note("a", 3, 0.25, ValueError("no\nrow"))
    clock.now += 100
    assert await accounts.write(1) == 1
    found = await record(band)
    assert (found.runs, found.done, found.failures, found.seconds) == (2, 5, 1, 0.75)
    assert (found.trouble, found.is_failing) == ("ValueError: no row", True)
    assert found.ran_s_ago is not None
    assert found.ran_s_ago >= 100
    assert (await record(band, "b")).runs == 0
    accounts.note("a", 0, 0.25)
    await accounts.write(1)
    found = await record(band)
    assert (found.runs, found.done, found.seconds, found.is_failing) == (3, 5, 1.0, False)
    assert found.trouble == "ValueError: no row"


async def test_with_nothing_new_nothing_is_written(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    accounts = Accounts(band.database, NAMES, HandClock())
    await accounts.write(1)
    monkeypatch.setattr(Database, "transact", None)
    assert await accounts.write(1) == 0


async def test_the_next_leader_goes_on_counting(band: Orchestra) -> None:
    first, second = (Accounts(band.database, NAMES, HandClock()) for _ in range(2))
    first.note("a", 1, 1.0)
    await first.write(1)
    second.note("a", 1, 1.0)
    await second.write(2)
    first.note("a", 1, 1.0)
    await first.write(1)
    assert (await record(band)).runs == 2  # its term is over
    first.note("a", 1, 1.0)
    await first.write(3)
    assert (await record(band)).runs == 3


@pytest.mark.parametrize("committed", [False, True])
async def test_an_answer_that_is_lost_counts_nothing_twice(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    accounts = Accounts(band.database, NAMES, HandClock())
    await accounts.write(1)
    accounts.note("a", 1, 1.0)
    transact = band.database.transact

    async def lose(work: Any) -> None:
        if committed:
            await transact(work)
        raise ConnectionResetError("no")

    with monkeypatch.context() as lost:
        lost.setattr(band.database, "transact", lose)
        with pytest.raises(ConnectionResetError):
            await accounts.write(1)
    accounts.note("a", 1, 1.0)
    await accounts.write(1)
    assert (await record(band)).runs == 2


async def test_what_is_written_of_an_error_is_storable_and_masked(band: Orchestra) -> None:
    accounts = Accounts(band.database, NAMES, HandClock())
    masks.remember(["hunter2-secret"])
    try:
        accounts.note("a", 0, 0.0, ValueError("hunter2-secret \x00 \ud800" + "x" * 1000))
        await accounts.write(1)
    finally:
        masks.forget_all()
    trouble = (await record(band)).trouble
    assert trouble is not None
    assert "hunter2" not in trouble
    assert "\\x00 \\ud800" in trouble
    assert len(trouble) <= TROUBLE_LENGTH_MAX
