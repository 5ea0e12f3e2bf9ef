"""From the run that makes a table to those that need it, and no further."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from aaiclick.orchestration.models import Group
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.object_tables.references import free_runs
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import table_run_refs
from tests.support.band import band
from tests.support.orchestra import Orchestra, make
from tests.support.tables import (
    drop,
    failed,
    hold,
    pins,
    references_left,
    registered,
    returned,
    run_refs,
    table_of,
)

__all__ = ["band"]

AGAIN = RetryPolicy(max_retries=3, delay_s=0)


# ---------------------------------------------------------------- publish and unpin


async def test_a_table_lives_from_its_maker_to_its_last_consumer(band: Orchestra) -> None:
    a = make("a")
    first, second = make("b", kwargs={"x": a}), make("c", kwargs={"x": a})
    await band.submit(a, first, second)
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table, made=(table,)))
    assert await pins(band) == {(first.id, table), (second.id, table)}
    assert await run_refs(band) == set()
    assert await drop(band) == set()
    claims = await band.claim_named()
    await band.report(returned(claims["b"], made=()))
    assert await drop(band) == set()
    await band.report(returned(claims["c"], made=()))
    assert await drop(band) == {table}
    assert await references_left(band) == 0


async def test_a_consumer_that_dies_after_its_start_finds_its_input_again(band: Orchestra) -> None:
    """Pitfall T12."""
    a = make("a")
    await band.submit(a, make("b", kwargs={"x": a}, retry=AGAIN))
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table))
    for _ in range(3):
        (claim,) = await band.claim()
        (made,) = await hold(band, claim)
        await band.report(failed(claim))
        assert await drop(band) == {made}
    (claim,) = await band.claim()
    await band.report(returned(claim, made=()))
    assert await drop(band) == {table}


async def test_a_late_report_frees_its_own_run_and_not_its_successor(band: Orchestra) -> None:
    """Pitfall T13."""
    a = make("a")
    consumer = make("b", kwargs={"x": a})
    await band.submit(a, consumer)
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table))
    (zombie,) = await band.claim()
    (old,) = await hold(band, zombie)
    await band.coordinator.release(band.worker, [zombie])
    (claim,) = await band.claim()
    (new,) = await hold(band, claim)
    receipt = await band.report(returned(zombie, old))
    assert not receipt.accepted
    assert await run_refs(band) == {(claim.task_id, claim.epoch, new)}
    assert await pins(band) == {(consumer.id, table)}
    assert await drop(band) == {old}


async def test_names_that_were_not_used_are_forgotten_with_the_report(band: Orchestra) -> None:
    a = make("a")
    await band.submit(a, make("b", kwargs={"x": a}))
    (claim,) = await band.claim()
    names = await hold(band, claim, outputs=4)
    await band.report(returned(claim, names[1], made=(names[1], names[2])))
    assert await registered(band) == {names[1], names[2]}
    assert await drop(band) == {names[2]}


async def test_a_table_that_is_handed_on_is_pinned_for_the_next(band: Orchestra) -> None:
    a = make("a")
    b = make("b", kwargs={"x": a})
    c = make("c", kwargs={"x": b})
    await band.submit(a, b, c)
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table))
    (claim,) = await band.claim()
    await band.report(returned(claim, table, made=()))
    assert await pins(band) == {(c.id, table)}
    assert await drop(band) == set()
    (claim,) = await band.claim()
    await band.report(returned(claim, made=()))
    assert await drop(band) == {table}
    assert await references_left(band) == 0


async def test_an_input_that_its_consumer_never_touched_goes_too(band: Orchestra) -> None:
    a = make("a")
    await band.submit(a, make("b", kwargs={"x": a}))
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table))
    (claim,) = await band.claim()
    await hold(band, claim)
    await band.report(returned(claim, made=()))
    assert await registered(band) == {table}
    assert await drop(band) == {table}
    assert await references_left(band) == 0


async def test_a_batch_ends_the_references_of_all_and_of_each_its_own(band: Orchestra) -> None:
    a = make("a")
    b, c = make("b", kwargs={"x": a}), make("c", kwargs={"x": a})
    last = make("last", kwargs={"y": b})
    await band.submit(a, b, c, last)
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table))
    claims = await band.claim_named()
    (of_b,) = await hold(band, claims["b"])
    (of_c,) = await hold(band, claims["c"])
    await band.report(returned(claims["b"], of_b), failed(claims["c"]))
    assert await pins(band) == {(c.id, table), (last.id, of_b)}
    assert await run_refs(band) == set()
    assert await drop(band) == {of_c}


async def test_a_consumer_of_a_group_at_any_depth_is_pinned(band: Orchestra) -> None:
    with Group("outer") as outer, Group("inner"):
        a = make("a")
    c = make("c", kwargs={"x": outer})
    await band.submit(outer, a, c)
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table))
    assert await pins(band) == {(c.id, table)}


async def test_the_result_of_a_job_keeps_its_tables(band: Orchestra) -> None:
    a = make("a")
    job = await band.submit_returning(a, a)
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table))
    assert await pins(band) == {(job.id, table)}
    assert await drop(band) == set()


async def test_what_nobody_waits_for_goes_at_once(band: Orchestra) -> None:
    await band.submit(make("a"))
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table))
    assert await drop(band) == {table}


async def test_a_table_that_a_run_does_not_hold_is_not_pinned_by_its_result(band: Orchestra) -> None:
    a = make("a")
    await band.submit(a, make("b", kwargs={"x": a}))
    (claim,) = await band.claim()
    await hold(band, claim)
    await band.report(returned(claim, "t123_1_1", "p_prices"))
    assert await pins(band) == set()


# ---------------------------------------------------------------- ends of other kinds


async def test_cancelled_consumers_unpin_at_once(band: Orchestra) -> None:
    a = make("a")
    job = await band.submit(a, make("b", kwargs={"x": a}))
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table))
    await band.coordinator.cancel(job.id)
    assert await drop(band) == {table}
    assert await references_left(band) == 0


async def test_failed_and_doomed_consumers_keep_their_pins(band: Orchestra) -> None:
    """RULINGS 37: whoever clears them finds their inputs."""
    a = make("a")
    b = make("b", kwargs={"x": a})
    c = make("c", kwargs={"x": a, "y": b})
    await band.submit(a, b, c)
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table))
    (claim,) = await band.claim()
    await band.report(failed(claim, made=()))
    assert await pins(band) == {(b.id, table), (c.id, table)}
    assert await drop(band) == set()


async def test_a_cancelled_body_holds_its_tables_until_it_is_dead(band: Orchestra) -> None:
    """RULINGS 10."""
    job = await band.submit(make("a"))
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.coordinator.cancel(job.id)
    assert await drop(band) == set()
    await band.coordinator.let_go(band.worker, [(claim.task_id, claim.epoch)])
    assert await drop(band) == {table_of(claim)} == {table}


async def test_full_preservation_keeps_what_nobody_needs(band: Orchestra) -> None:
    """RULINGS 36."""
    await band.submit(make("a"), preservation_mode="full")
    (claim,) = await band.claim()
    (table,) = await hold(band, claim)
    await band.report(returned(claim, table, made=(table,)))
    assert await drop(band) == set()
    assert await registered(band) == {table}


@pytest.mark.parametrize("dialect", ["postgres"], indirect=True)
async def test_very_many_runs_may_let_go_at_once(band: Orchestra) -> None:
    """In one statement they would be too deep for PostgreSQL."""
    await band.coordinator.let_go(band.worker, [(number, 1) for number in range(20_000)])


@pytest.mark.parametrize("dialect", ["mariadb"], indirect=True)
@pytest.mark.parametrize("count", [1, 2])
async def test_runs_that_let_go_read_their_own_references_alone(band: Orchestra, count: int) -> None:
    """For a list with one pair in it, MariaDB uses no index by itself."""
    facts = {"epoch": 1, "worker_id": band.worker, "freed": False}
    many = [{"task_id": number, "table_name": f"t{number}_1_1", **facts} for number in range(1, 301)]
    await band.database.transact(lambda session: session.insert(table_run_refs, many))

    async def reads(session: Session) -> int:
        rows = await session.rows(text("SHOW SESSION STATUS LIKE 'Handler_read%'"))
        return sum(int(row.Value) for row in rows)

    async def work(session: Session) -> int:
        first, before = await reads(session), await reads(session)  # to ask costs some too
        await free_runs(session, [(number, 1) for number in range(1, count + 1)])
        return await reads(session) - before - (before - first)

    assert await band.database.transact(work) < 100
    assert len(await run_refs(band)) == 300 - count
