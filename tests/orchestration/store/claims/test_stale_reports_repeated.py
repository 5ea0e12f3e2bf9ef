"""Reports that are repeated: the same is answered as the first time, something else is a conflict of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import func, select

from aaiclick.orchestration.models import Claim, Done, Failure, Receipt, Report
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.claims.stale_reports import Refused, digest_of
from aaiclick.orchestration.store.tables import runs, tasks
from tests.orchestration.store.claims.test_stale_reports import claim_one, clear_it, key, late_events
from tests.support.band import SERVERS, band
from tests.support.contents import contents
from tests.support.growing import grown
from tests.support.orchestra import Orchestra, done, failure, make

__all__ = ["band"]


def accepted(*runs: Claim) -> Receipt:
    return Receipt({key(run) for run in runs})


def conflict(*runs: Claim) -> Receipt:
    return Receipt(conflicts={key(run) for run in runs})


# ---------------------------------------------------------------- repeated


TEXTS = ['"x"', "null", '{"b": 1,  "a": [1.0, 1, true]}', '"\\u00e4 ä 😀 \\\\ \' "', '" trailing  "']


async def test_a_completion_that_is_repeated_to_the_letter_is_accepted_again(band: Orchestra) -> None:
    await band.submit(*(make("t") for _ in TEXTS))
    claims = await band.claim()
    reports = [replace(done(*both), log_path="/logs/1") for both in zip(claims, TEXTS, strict=True)]
    for again in (reports, reports, [replace(report, log_path=None, holds=True, made=()) for report in reports]):
        assert await band.report(*again) == accepted(*claims)
    assert await late_events(band) == []


FAILURES: list[dict[str, Any]] = [
    {},
    {"traceback": "Traceback: ä 😀\n  line\n", "error": "ValueError: ***\n… 5 characters left out …\n "},
    {"crashed": True, "error": "", "traceback": ""},
    {"permanent": True},
]


async def test_a_failure_that_is_repeated_to_the_letter_is_accepted_again(band: Orchestra) -> None:
    await band.submit(*(make("t", retry=RetryPolicy(5, delay_s=9, jitter=False)) for _ in FAILURES))
    claims = await band.claim()
    reports = [failure(claim, **facts) for claim, facts in zip(claims, FAILURES, strict=True)]
    first = await band.report(*reports)
    assert first.accepted == accepted(*claims).accepted
    for _ in range(2):
        assert await band.report(*reports) == accepted(*claims)
    stored = {(run.outcome, run.late, run.report_digest) for run in await band.rows(select(runs))}
    assert stored == {("failed", False, None), ("crashed", False, None)}
    assert await late_events(band) == []


async def test_after_a_completion_anything_else_is_a_conflict(band: Orchestra) -> None:
    claim = await claim_one(band)
    await band.report(done(claim, '"x"'))
    before = await contents(band.database)
    child = replace(grown(claim, make("child")), result_json='"x"')
    for other in (done(claim, '"other"'), done(claim, ' "x"'), failure(claim), child, child):
        assert await band.report(other) == conflict(claim)
    assert await contents(band.database) == before
    assert await band.report(done(claim, '"x"')) == accepted(claim)


@pytest.mark.parametrize("retries", [0, 5])
async def test_after_a_failure_anything_else_is_a_conflict_also_while_the_next_attempt_runs(
    band: Orchestra, retries: int
) -> None:
    claim = await claim_one(band, retry=RetryPolicy(retries, delay_s=0))
    first = failure(claim, error="first", traceback="line")
    await band.report(first)
    assert len(await band.claim()) == bool(retries)
    before = await contents(band.database)
    others: list[Report] = [replace(first, error="other"), replace(first, traceback=None), replace(first, crashed=True)]
    for other in [*others, done(claim), grown(claim, make("child"))]:
        assert await band.report(other) == conflict(claim)
    assert await band.report(first) == accepted(claim)
    assert await contents(band.database) == before


async def test_of_a_completion_that_was_cleared_only_the_kind_is_known(band: Orchestra) -> None:
    claim = await claim_one(band)
    await band.report(done(claim, '"x"'))
    await clear_it(band, claim)
    assert (await band.report(done(claim, '"x"'))).accepted == {key(claim)}
    assert (await band.report(done(claim, '"nobody knows"'))).accepted == {key(claim)}
    assert (await band.fail(claim)).conflicts == {key(claim)}
    (again,) = await band.claim()
    assert (await band.report(done(again, '"y"'))).accepted == {key(again)}
    assert (await band.report(done(claim, '"y"'))).accepted == {key(claim)}
    assert await late_events(band) == []
    assert await band.violations() == []


# ---------------------------------------------------------------- repeated by those who made tasks


async def test_who_made_tasks_and_says_so_again_is_accepted(band: Orchestra) -> None:
    claim = await claim_one(band)
    child = make("child")
    report = grown(claim, child, returns=child)
    for _ in range(2):
        assert await band.report(report) == accepted(claim)
    other = grown(claim, make("child"))
    for wrong in (other, replace(report, children=other.children), replace(report, children=None), failure(claim)):
        assert await band.report(wrong) == conflict(claim)
    assert await band.scalar(select(func.count()).select_from(tasks)) == 2


async def test_what_could_not_be_added_to_the_graph_is_known_again(band: Orchestra) -> None:
    """Its task failed, with the reason; what the worker said was no failure."""
    claim = await claim_one(band)
    report = grown(claim, make("nowhere", group_id=77))
    for _ in range(3):
        assert await band.report(report) == accepted(claim)
    (run,) = await band.rows(select(runs))
    assert (run.outcome, run.report_digest) == ("failed", digest_of(report))
    for other in (done(claim), replace(report, result_json='"other"'), failure(claim, error=run.error)):
        assert await band.report(other) == conflict(claim)
    assert await late_events(band) == []


@SERVERS
@pytest.mark.parametrize("kind", [done, failure])
async def test_what_the_database_refused_is_known_again(band: Orchestra, kind: Callable[[Claim], Report]) -> None:
    claim = await claim_one(band, max_retries=5)
    report = replace(kind(claim), log_path="x" * 2000)
    for _ in range(3):
        assert await band.report(report) == accepted(claim)
    other = done(claim, '"other"') if kind is done else failure(claim, error="other")
    assert (await band.report(other)).conflicts == {key(claim)}
    assert (await band.task(claim)).status == "failed"


@pytest.mark.parametrize("dialect", ["postgres"], indirect=True)
async def test_what_the_database_refuses_before_it_looks_is_answered_all_the_same(band: Orchestra) -> None:
    await band.submit(make("late"), make("known"), make("other"), make("fine"))
    held = await band.claim_named()
    unreadable = {name: done(claim, "{not json") for name, claim in held.items()}
    assert (await band.report(unreadable["known"])).accepted == {key(held["known"])}
    await band.complete(held["other"])
    await band.coordinator.release(band.worker, [held["late"]])
    receipt = await band.report(*(unreadable[name] for name in ("late", "known", "other")), done(held["fine"]))
    assert receipt.accepted == {key(held["known"]), key(held["fine"])}
    assert receipt.conflicts == {key(held["other"])}
    assert await late_events(band) == [
        (*key(held["late"]), band.worker, "pending", "completed, but released before"),
    ]
    assert await band.violations() == []


# ---------------------------------------------------------------- in one batch


async def test_one_that_is_late_and_one_in_conflict_spoil_no_other(band: Orchestra) -> None:
    await band.submit(*(make(name) for name in ("late", "repeated", "other", "fine", "bad", "parent", "late parent")))
    held = await band.claim_named()
    await band.report(done(held["repeated"], '"x"'), done(held["other"], '"x"'))
    await band.coordinator.release(band.worker, [held["late"], held["late parent"]])
    receipt = await band.report(
        done(held["late"]),
        done(held["repeated"], '"x"'),
        done(held["other"], '"y"'),
        done(held["fine"]),
        failure(held["bad"]),
        grown(held["parent"], make("child")),
        grown(held["late parent"], make("never")),
        replace(done(held["fine"]), task_id=12345),
    )
    assert receipt.accepted == {key(held[name]) for name in ("repeated", "fine", "bad", "parent")}
    assert receipt.conflicts == {key(held["other"])}
    assert {event[:2] for event in await late_events(band)} == {key(held["late"]), key(held["late parent"])}
    assert (await band.task(held["other"])).result_json == '"x"'
    assert await band.violations() == []


PAIRS: dict[str, tuple[Callable[[Claim], Report], Callable[[Claim], Report]]] = {
    "1": (lambda claim: done(claim, "1"), lambda claim: done(claim, "2")),
    "failed 1": (lambda claim: failure(claim, error="failed 1"), lambda claim: failure(claim, error="2")),
    "3": (failure, lambda claim: done(claim, "3")),
    "4": (lambda claim: replace(grown(claim, make("a")), result_json="4"), lambda claim: grown(claim, make("b"))),
    "5": (lambda claim: grown(claim, make("a")), lambda claim: done(claim, "5")),
}
"""What a run says, and what it says besides; by what is stored of it."""


async def test_of_two_different_reports_of_one_run_in_a_batch_one_counts(band: Orchestra) -> None:
    job = await band.submit(*map(make, PAIRS))
    held = await band.claim_named()
    both = [report(held[name]) for name, pair in PAIRS.items() for report in pair]
    assert await band.report(*both) == Receipt(accepted(*held.values()).accepted, conflicts={*map(key, held.values())})
    for name, claim in held.items():
        task = await band.task(claim)
        assert (task.error or task.result_json) == name
    assert [name for name in await band.statuses(job) if name not in PAIRS] == ["a"]
    assert await late_events(band) == []
    assert await band.violations() == []


async def test_a_report_that_is_in_a_batch_twice_counts_once(band: Orchestra) -> None:
    await band.submit(make("a"), make("b"), make("c"))
    a, b, c = await band.claim()
    reports: list[Report] = [done(a), failure(b), grown(c, make("child"))]
    for _ in range(2):
        assert await band.report(*reports, *reports) == accepted(a, b, c)
    assert await band.violations() == []


async def test_reports_that_count_ask_no_more_of_the_database(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object) -> None:
        raise AssertionError("it was asked")

    monkeypatch.setattr("aaiclick.orchestration.store.claims.reports.answer_stale", never)
    await band.submit(make("a"), make("b"))
    first, second = await band.claim()
    assert len((await band.report(done(first), failure(second))).accepted) == 2


# ---------------------------------------------------------------- digests


def test_a_digest_knows_what_was_said_and_nothing_else() -> None:
    report = Done(1, 1, '"x"')
    assert len(digest_of(report)) == 64
    assert digest_of(report) == digest_of(replace(report, log_path="/logs/1", holds=True))
    assert digest_of(report) == digest_of(Refused(1, 1, "whatever", report=report))
    told: list[Report] = [
        report,
        replace(report, result_json="1"),
        Failure(1, 1, '"x"'),
        Failure(1, 1, '"x"', crashed=True),
    ]
    told += [Failure(1, 1, "\ud800"), Failure(1, 1, '"x"', traceback="")]
    assert len({digest_of(each) for each in told}) == len(told)
