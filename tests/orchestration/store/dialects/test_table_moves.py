"""What is asked about references to tables: the same answer from all three databases."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sqlalchemy import delete, select

from aaiclick.orchestration.models import Group
from aaiclick.orchestration.store.dialects.table_moves import Changes, Hold, Key, Pin, Ref, Seen
from aaiclick.orchestration.store.tables import table_context_refs, table_pin_refs, table_run_refs
from tests.support.band import SERVERS, band
from tests.support.orchestra import Orchestra, make
from tests.support.tables import pins, registered, run_refs

__all__ = ["band"]


async def hold(band: Orchestra, *holds: Hold, worker: int | None = None) -> set[Key]:
    moves, who = band.database.dialect.tables, worker or band.worker
    return await band.database.transact(lambda session: moves.hold(session, who, holds))


async def change(band: Orchestra, changes: Changes) -> None:
    await band.database.transact(lambda session: band.database.dialect.tables.change(session, changes))


async def look(band: Orchestra, runs: Sequence[int], done: Sequence[int], makers: Sequence[int]) -> set[Seen]:
    moves = band.database.dialect.tables
    return set(await band.database.read(lambda session: moves.look(session, runs, done, makers)))


async def marked(band: Orchestra) -> tuple[set[Ref], set[Pin]]:
    """The references, of runs and of tasks, that have ended."""
    refs = await band.rows(select(table_run_refs).where(table_run_refs.c.freed))
    ended = await band.rows(select(table_pin_refs).where(table_pin_refs.c.freed))
    return {(row.task_id, row.epoch, row.table_name) for row in refs}, {(row.task_id, row.table_name) for row in ended}


# ---------------------------------------------------------------- hold


async def test_of_many_runs_those_hold_whose_fence_holds(band: Orchestra) -> None:
    job = await band.submit(*(make(name) for name in "abcd"), preservation_mode="full")
    claims = await band.claim_named()
    a, b, c, d = ((claims[name].task_id, claims[name].epoch) for name in "abcd")
    await band.coordinator.release(band.worker, [claims["c"]])
    asked = [Hold(*a, ["a1", "a2"]), Hold(*b), Hold(*c, ["c1"]), Hold(d[0], d[1] + 1, ["d1"])]
    assert await hold(band, *asked) == {a, b}
    assert await run_refs(band) == {(*a, "a1"), (*a, "a2")}
    rows = {row.table_name: row for row in await band.rows(select(table_context_refs))}
    assert set(rows) == {"a1", "a2"}
    assert (rows["a1"].context_id, rows["a1"].epoch, rows["a1"].job_id) == (*a, job.id)
    assert rows["a1"].preserved
    assert not rows["a1"].dropping


async def test_of_another_worker_nothing_is_held(band: Orchestra) -> None:
    await band.submit(make("a"))
    (claim,) = await band.claim()
    assert await hold(band, Hold(claim.task_id, claim.epoch, ["out"]), worker=band.worker + 1) == set()
    assert await run_refs(band) == set()
    assert await registered(band) == set()


async def test_a_run_that_asks_twice_at_once_is_answered_once(band: Orchestra) -> None:
    await band.submit(make("a"))
    (claim,) = await band.claim()
    run = (claim.task_id, claim.epoch)
    assert await hold(band, Hold(*run, ["out", "out"]), Hold(*run, ["out", "more"]), Hold(*run)) == {run}
    assert await run_refs(band) == {(*run, "out"), (*run, "more")}


# ---------------------------------------------------------------- look


async def test_what_is_seen(band: Orchestra) -> None:
    with Group("outer") as outer, Group("inner"):
        a = make("a")
    consumer, follower = make("b", kwargs={"x": outer, "y": a}), make("c")
    a >> follower
    job = await band.submit_returning(a, outer, a, consumer, follower)
    (claim,) = await band.claim()
    await hold(band, Hold(a.id, claim.epoch, ["in"]))
    await change(band, Changes(pinned=[(a.id, "in"), (consumer.id, "other")]))
    ref, pin = Seen("ref", a.id, claim.epoch, "in"), Seen("pin", a.id, 0, "in")
    wanted = {Seen("consumer", a.id, consumer.id, None), Seen("kept", a.id, job.id, None)}
    assert await look(band, [a.id], [a.id], [a.id]) == {ref, pin} | wanted
    assert await look(band, [a.id], [], []) == {ref}
    assert await look(band, [], [a.id], []) == {pin}
    assert await look(band, [], [], []) == set()


# ---------------------------------------------------------------- change


async def test_each_reference_becomes_what_is_said(band: Orchestra) -> None:
    await band.submit(make("a"), make("b"))
    runs = sorted((claim.task_id, claim.epoch) for claim in await band.claim())
    one, other = runs
    await hold(band, *(Hold(*run, [f"t{run[0]}", f"u{run[0]}", "v"]) for run in runs))
    await change(band, Changes(pinned=[(1, "a"), (1, "b"), (2, "a"), (2, "b")]))
    await change(
        band,
        Changes(
            pinned=[(3, "c")],
            unpinned=[(1, "a"), (9, "a")],
            freed=[(2, "b"), (9, "b")],
            ended=[(*one, f"t{one[0]}"), (*other, "v"), (9, 9, "u")],
            gone=[(*one, "v"), (9, 9, "v")],
            forgotten=[f"u{one[0]}", "unknown"],
        ),
    )
    assert await pins(band) == {(1, "b"), (2, "a"), (3, "c")}
    assert await run_refs(band) == {(*one, f"u{one[0]}"), (*other, f"t{other[0]}"), (*other, f"u{other[0]}")}
    assert await marked(band) == ({(*one, f"t{one[0]}"), (*other, "v"), (9, 9, "u")}, {(2, "b")})
    assert await registered(band) == {f"t{one[0]}", f"t{other[0]}", f"u{other[0]}", "v"}
    await change(band, Changes())


async def test_a_pin_that_has_ended_counts_again(band: Orchestra) -> None:
    await change(band, Changes(pinned=[(1, "a")]))
    await change(band, Changes(freed=[(1, "a")]))
    assert await pins(band) == set()
    await change(band, Changes(pinned=[(1, "a"), (1, "b")]))
    assert await pins(band) == {(1, "a"), (1, "b")}


async def test_names_that_differ_in_case_or_blanks_are_two(band: Orchestra) -> None:
    await change(band, Changes(pinned=[(1, "a"), (1, "A"), (1, "a ")]))
    await change(band, Changes(unpinned=[(1, "A")]))
    assert await pins(band) == {(1, "a"), (1, "a ")}


async def test_only_what_is_marked_is_deleted_and_only_that_which_was_seen(band: Orchestra) -> None:
    await band.submit(make("a"))
    (claim,) = await band.claim()
    run = (claim.task_id, claim.epoch)
    await hold(band, Hold(*run, ["a", "b", "c"]))
    ended = [(*run, "a"), (*run, "b")]
    await change(band, Changes(pinned=[(1, "a"), (1, "b"), (1, "c")], ended=ended))
    await change(band, Changes(freed=[(1, "a"), (1, "b")]))
    moves = band.database.dialect.tables
    seen = ([(*run, "a"), (*run, "c")], [(1, "a"), (1, "c")])
    await band.database.transact(lambda session: moves.delete_freed(session, *seen))
    assert await marked(band) == ({(*run, "b")}, {(1, "b")})
    assert await run_refs(band) == {(*run, "c")}
    assert await pins(band) == {(1, "c")}


@SERVERS
async def test_a_pin_that_someone_deletes_meanwhile_is_there_again(band: Orchestra) -> None:
    await change(band, Changes(pinned=[(1, "a")]))
    async with band.transaction() as session:
        await session.run(delete(table_pin_refs))
        changing = asyncio.create_task(change(band, Changes(pinned=[(1, "a")])))
        await band.until_waiting()
    await changing
    assert await pins(band) == {(1, "a")}


@SERVERS
async def test_a_pin_that_counts_again_meanwhile_is_not_deleted(band: Orchestra) -> None:
    await change(band, Changes(pinned=[(1, "a")]))
    await change(band, Changes(freed=[(1, "a")]))
    moves = band.database.dialect.tables
    async with band.transaction() as session:
        await moves.change(session, Changes(pinned=[(1, "a")]))
        seen = asyncio.create_task(band.database.transact(lambda other: moves.delete_freed(other, [], [(1, "a")])))
        await band.until_waiting()
    await seen
    assert await pins(band) == {(1, "a")}
