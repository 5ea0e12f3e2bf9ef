"""Dropping: marked, dropped, forgotten; a crash between any two of these is taken up by the next round."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select, update

from aaiclick.data.clients.tables import ALONE
from aaiclick.errors import DataRefused, DataUnreachable
from aaiclick.orchestration.control import table_dropper as module
from aaiclick.orchestration.control.control_loop import Control
from aaiclick.orchestration.control.table_dropper import TableDropper
from aaiclick.orchestration.models import Claim
from aaiclick.orchestration.store.retention import table_drops
from aaiclick.orchestration.store.tables import table_context_refs, workers
from tests.support.band import band
from tests.support.orchestra import Orchestra, done, make
from tests.support.tables import hold, pins, references_left, registered, returned, run_refs

__all__ = ["band"]


class Shelf:
    """An engine that is only a set of tables."""

    tables = ALONE

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.away = False
        self.refused: set[str] = set()
        self.dropped: list[str] = []

    async def command(self, sql: str, settings: object = None) -> None:
        if self.away:
            raise DataUnreachable(cause="away")
        name = sql.split("`")[1]
        if name in self.refused:
            raise DataRefused(cause="too large to drop")
        self.names.discard(name)
        self.dropped.append(name)


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    found = Shelf()

    async def opened(url: str) -> Shelf:
        if found.away:
            raise DataUnreachable(cause="away")
        return found

    async def closed(url: str) -> None:
        """There is nothing to close."""

    monkeypatch.setattr(module, "open_client", opened)
    monkeypatch.setattr(module, "close_client", closed)
    return found


@pytest.fixture
def dropper(band: Orchestra) -> TableDropper:
    return TableDropper(band.database)


async def made(band: Orchestra, shelf: Shelf, count: int = 1, **options: Any) -> list[str]:
    """Tables of a run that completed, which nobody needs."""
    await band.submit(make("a"), **options)
    (claim,) = await band.claim()
    names = await hold(band, claim, outputs=count)
    shelf.names |= set(names)
    await band.report(returned(claim))
    return names


async def test_what_nobody_needs_is_dropped_and_forgotten(band: Orchestra, shelf: Shelf, dropper: TableDropper) -> None:
    await made(band, shelf, 3)
    assert await dropper.drop_unneeded() == 3
    assert shelf.names == set()
    assert await references_left(band) == 0
    assert await dropper.drop_unneeded() == 0


async def test_a_crash_at_any_step_is_taken_up(
    band: Orchestra, shelf: Shelf, dropper: TableDropper, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killing(nth: int) -> None:
        """Let so many calls through, and then die before or after the next."""
        left = [nth]

        def cut(call: object) -> object:
            async def wrapped(*args: object, **kwargs: object) -> object:
                left[0] -= 1
                if left[0] == 0:
                    raise Killed
                answer = await call(*args, **kwargs)  # type: ignore[operator]
                left[0] -= 1
                if left[0] == 0:
                    raise Killed
                return answer

            return wrapped

        monkeypatch.setattr(band.database, "transact", cut(transact))
        monkeypatch.setattr(band.database, "read", cut(read))
        monkeypatch.setattr(module, "drop", cut(drop))

    transact, read, drop = band.database.transact, band.database.read, module.drop
    await made(band, shelf, 3)
    for nth in range(1, 100):
        killing(nth)
        try:
            await dropper.drop_unneeded()
            break
        except Killed:
            continue
        finally:
            monkeypatch.setattr(band.database, "transact", transact)
            monkeypatch.setattr(band.database, "read", read)
            monkeypatch.setattr(module, "drop", drop)
            if await registered(band):
                assert shelf.names
    assert nth > 6
    assert shelf.names == set()
    assert await references_left(band) == 0


async def test_an_engine_that_is_away_is_told_once_and_waited_for(
    band: Orchestra, shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    await made(band, shelf)
    shelf.away = True
    control = Control(band.database, 1, session_s=30)
    for _ in range(3):
        await control.round()
    assert len([line for line in caplog.messages if "drop_unneeded fails" in line]) == 1
    assert control._since is not None  # it is no outage of the state
    shelf.away = False
    await control.round()
    assert await references_left(band) == 0
    assert "drop_unneeded works again" in caplog.text


async def test_a_table_that_cannot_be_dropped_does_not_hold_up_the_others(
    band: Orchestra,
    shelf: Shelf,
    dropper: TableDropper,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(table_drops, "DROPPED_AT_ONCE", 2)
    names = await made(band, shelf, 5)
    shelf.refused = set(names[:3])
    assert await dropper.drop_unneeded() == 2
    assert await dropper.drop_unneeded() == 0
    assert shelf.names == set(names[:3])
    told = [line for line in caplog.messages if line.startswith("dropping table")]
    assert [line.split()[2] for line in told] == sorted(names[:3])  # each once, not in each round
    shelf.refused = set()
    assert await dropper.drop_unneeded() == 3


async def test_many_references_are_looked_at_in_bounded_steps(
    band: Orchestra, shelf: Shelf, dropper: TableDropper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_drops, "LOOKED_AT_ONCE", 3)
    await made(band, shelf, 20)
    assert await band.database.transact(table_drops.mark_unneeded) == 3
    assert await dropper.drop_unneeded() == 20


async def test_the_loop_drops_what_it_finds(band: Orchestra, shelf: Shelf) -> None:
    await made(band, shelf)
    control = Control(band.database, 1, session_s=30)
    await control.round()
    assert shelf.names == set()
    assert await references_left(band) == 0


# ---------------------------------------------------------------- what nobody said


async def stop_worker(band: Orchestra) -> None:
    await band.coordinator.deregister(band.worker)


async def held(band: Orchestra) -> tuple[Claim, str]:
    await band.submit(make("a"))
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    return claim, table


async def test_what_a_lost_worker_held_is_freed_once_its_claims_are_taken(
    band: Orchestra, shelf: Shelf, dropper: TableDropper
) -> None:
    _, table = await held(band)
    await stop_worker(band)
    assert await dropper.free_strays() == 0  # its report would still count
    await Control(band.database, 1, session_s=30).round()
    assert await run_refs(band) == set()
    assert shelf.dropped == [table]


async def test_what_a_live_worker_holds_stays_whatever_became_of_the_claim(
    band: Orchestra, shelf: Shelf, dropper: TableDropper
) -> None:
    """RULINGS 10: its body may go on."""
    claim, _ = await held(band)
    await band.coordinator.clear(claim.task_id)
    assert await dropper.free_strays() == 0
    assert await dropper.drop_unneeded() == 0
    await band.database.transact(lambda session: session.run(update(workers).values(status="stopped")))
    assert await dropper.free_strays() == 1
    assert await dropper.drop_unneeded() == 1


async def test_pins_of_tasks_that_did_not_use_them_end_with_them(
    band: Orchestra, shelf: Shelf, dropper: TableDropper
) -> None:
    """It waits for the maker, and its arguments are another's results."""
    a, c = make("a"), make("c")
    b = make("b", kwargs={"x": c})
    a >> b
    await band.submit(a, b, c)
    claims = await band.claim_named()
    (table,) = await hold(band, claims["a"])
    await band.report(returned(claims["a"], table), done(claims["c"], "1"))
    assert await pins(band) == {(b.id, table)}
    assert await dropper.free_idle_pins() == 0
    await band.complete(*await band.claim())
    assert await dropper.free_idle_pins() == 1
    assert await dropper.drop_unneeded() == 1
    assert await references_left(band) == 0


async def test_what_is_preserved_is_looked_at_and_left(band: Orchestra, shelf: Shelf, dropper: TableDropper) -> None:
    (table,) = await made(band, shelf, preservation_mode="full")
    assert await dropper.drop_unneeded() == 0
    assert shelf.names == {table}
    assert [row.table_name for row in await band.rows(select(table_context_refs))] == [table]
    assert await references_left(band) == 1
