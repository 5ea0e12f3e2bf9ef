"""Questions about jobs, with the same answer on all three databases; cancelling, recounting and reserving a job."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select, update

from aaiclick.errors import InputError
from aaiclick.orchestration.models import Group, Job, JobStatus
from aaiclick.orchestration.store.moves.early_endings import recount_groups
from aaiclick.orchestration.store.reading import jobs as store
from aaiclick.orchestration.store.tables import claims, delayed, events, groups, ready, runs
from tests.support.band import SERVERS, band
from tests.support.contents import contents
from tests.support.orchestra import Orchestra, failing, make

__all__ = ["band"]


async def ask(band: Orchestra, question: Callable[..., Any], *arguments: object) -> Any:
    return await band.database.read(lambda session: question(session, *arguments))


async def found(
    band: Orchestra, name_like: str | None = None, status: JobStatus | None = None, limit: int = 100, offset: int = 0
) -> list[str]:
    """The names of the jobs that match; counting them must agree with listing them."""
    listed: list[Job] = await ask(band, store.list_jobs, status, name_like, limit, offset)
    if limit >= 100 and not offset:
        assert await ask(band, store.count_jobs, status, name_like) == len(listed)
    return [job.name for job in listed]


# ---------------------------------------------------------------- questions


async def test_jobs_are_listed_newest_first_a_page_at_a_time(band: Orchestra) -> None:
    for name in "abcde":
        await band.submit(name=name)
    assert await found(band) == ["e", "d", "c", "b", "a"]
    assert await found(band, limit=2) == ["e", "d"]
    assert await found(band, limit=2, offset=2) == ["c", "b"]
    assert await found(band, limit=2, offset=4) == ["a"]
    assert await found(band, limit=2, offset=5) == []
    assert await found(band, limit=1000, offset=2**63 - 1) == []


async def test_jobs_are_listed_by_status(band: Orchestra) -> None:
    await band.submit(make("works"), name="completed")
    await band.submit(make("breaks"), name="failed")
    await band.drain(failing("breaks"))
    await band.submit(make(), name="running")
    await band.claim()
    cancelled = await band.submit(make(), name="cancelled")
    await band.coordinator.cancel(cancelled.id)
    await band.submit(make(), name="pending")
    for status in JobStatus:
        assert await found(band, status=status) == [status.value]
        assert await found(band, "%ed", status) == ([status.value] if status.value.endswith("ed") else [])


NAMES = [
    *("load", "Load", "LOAD", "lòad", "lo\u0300ad", "lo ad", "loa_d", "loa%d"),
    *(
        "it's",
        'say "x"',
        "back\\slash",
        "a!b",
        "%",
        "_",
        "naïve",
        "Straße",
        "STRASSE",
        "日本",
        "🚀",
        "x'; DROP TABLE jobs",
    ),
]


MEANINGS = {
    "load": ["load"],
    "LOAD": ["LOAD"],
    "Load": ["Load"],
    "lo%d": ["loa%d", "loa_d", "lo ad", "lo\u0300ad", "load"],
    "L%": ["LOAD", "Load"],
    "l_ad": ["lòad", "load"],
    "loa_d": ["loa%d", "loa_d"],
    "it's": ["it's"],
    "%'%": ["x'; DROP TABLE jobs", "it's"],
    '%"x"': ['say "x"'],
    "back\\slash": ["back\\slash"],
    "%\\%": ["back\\slash"],
    "\\%": [],
    "\\": [],
    "a!b": ["a!b"],
    "!%": [],
    "_": ["🚀", "_", "%"],
    "__": ["日本"],
    "straße": [],
    "Stra_e": ["Straße"],
    "%'; DROP TABLE%": ["x'; DROP TABLE jobs"],
    "%'; DROP TABLE jobs; --": [],
    "NULL": [],
    "[a-z]%": [],
    "*": [],
    "loa?": [],
}


async def test_a_pattern_means_the_same_everywhere(band: Orchestra) -> None:
    """% and _ are wild; letters, accents, quotes and backslashes are themselves."""
    for name in NAMES:
        await band.submit(name=name)
    for pattern, names in MEANINGS.items():
        assert await found(band, pattern) == names, pattern
    assert len(await found(band, "%")) == len(await found(band)) == len(NAMES)


@pytest.mark.parametrize("wrong", ["", "a\0b", "%" * 201, "\ud800"], ids=repr)
async def test_a_pattern_that_no_database_could_take_is_refused(band: Orchestra, wrong: str) -> None:
    with pytest.raises(InputError, match="name_like"):
        await found(band, wrong)


async def test_what_is_not_there_is_none_or_nothing(band: Orchestra) -> None:
    assert await ask(band, store.get_job, 1) is None
    assert await ask(band, store.get_job_by_key, "k") is None
    assert await ask(band, store.get_task, 1) is None
    lists: list[Callable[..., Any]] = [
        *(store.get_tasks, store.get_groups, store.get_group_tasks, store.get_child_groups),
        *(store.get_runs, store.get_events, store.get_dependencies),
    ]
    for question in lists:
        assert list(await ask(band, question, 1)) == []
    assert await ask(band, store.get_results, []) == await ask(band, store.get_results, [1]) == {}
    assert await ask(band, store.count_tasks_by_status, 1) == {}
    assert await ask(band, store.find_stored, [1]) == {}


async def test_a_job_and_what_belongs_to_it(band: Orchestra) -> None:
    with Group("outer") as outer:
        first = make("first")
        with Group("inner"):
            second = make("second")
    first >> second
    job = await band.submit(outer, name="load", key="the key")
    (by_key, by_id) = await ask(band, store.get_job_by_key, "the key"), await ask(band, store.get_job, job.id)
    assert by_key.id == by_id.id == job.id
    assert [task.id for task in await ask(band, store.get_tasks, job.id)] == [first.id, second.id]
    assert [group.name for group in await ask(band, store.get_groups, job.id)] == ["outer", "inner"]
    assert [task.name for task in await ask(band, store.get_group_tasks, outer.id)] == ["first"]
    assert [group.name for group in await ask(band, store.get_child_groups, outer.id)] == ["inner"]
    assert len(await ask(band, store.get_dependencies, job.id)) == 1
    await band.drain(lambda claim: None, limit=1)
    assert await ask(band, store.count_tasks_by_status, job.id) == {"claimed": 1, "pending": 1}
    assert await ask(band, store.get_results, [second.id, first.id]) == {
        first.id: ("claimed", None),
        second.id: ("pending", None),
    }
    moves = [event.move for event in await ask(band, store.get_events, job.id)]
    assert moves[0] == "create"
    assert sorted(moves) == ["claim", "create", "start"]
    assert await ask(band, store.find_stored, [outer.id, first.id, 5]) == {outer.id: job.id, first.id: job.id}


# ---------------------------------------------------------------- cancel


async def mixed_job(band: Orchestra) -> Job:
    """Tasks in every state: ended, claimed, ready, waiting, and delayed until their next attempt."""
    outer = Group("outer")
    inner = Group("inner", parent_group_id=outer.id)
    completed, retried = make("completed", group_id=inner.id), make("retried", group_id=inner.id, max_retries=1)
    failed, claimed = make("failed", group_id=outer.id, critical=False), make("claimed", group_id=inner.id)
    waiting, doomed, last = make("waiting"), make("doomed"), make("last")
    claimed >> waiting
    failed >> doomed
    outer >> last
    job = await band.submit(completed, retried, failed, claimed, waiting, doomed, last)
    taken = await band.claim_named()
    assert set(taken) == {"completed", "retried", "failed", "claimed"}
    await band.complete(taken["completed"])
    await band.fail(taken["retried"], taken["failed"])
    await band.apply(job, make("ready"))
    assert await band.violations() == []
    return job


async def test_cancelling_ends_everything_that_has_not_ended_in_one_go(band: Orchestra) -> None:
    job = await mixed_job(band)
    (held,) = await band.rows(select(claims))
    assert await band.coordinator.cancel(job.id) is True
    assert await band.statuses(job) == {
        "completed": "completed",
        "failed": "failed",
        "doomed": "upstream_failed",
        "last": "upstream_failed",
        **dict.fromkeys(("claimed", "retried", "ready", "waiting"), "cancelled"),
    }
    ended = await band.job(job)
    assert (ended.status, ended.open_tasks, ended.completed_tasks) == (JobStatus.CANCELLED, 0, 1)
    assert ended.completed_at is not None
    for table in (ready, delayed, claims):
        assert await band.rows(select(table)) == []
    (run,) = await band.rows(select(runs).where(runs.c.task_id == held.task_id))
    assert run.outcome == "cancelled"
    moves = [row.move for row in await band.rows(select(events).where(events.c.task_id.is_(None)))]
    assert moves.count("cancel") == 1
    assert await band.violations() == []


async def test_cancelling_again_or_what_is_not_there_says_false_and_changes_nothing(band: Orchestra) -> None:
    job = await mixed_job(band)
    assert await band.coordinator.cancel(job.id) is True
    finished = await band.submit(make())
    await band.drain()
    before = await contents(band.database)
    assert await band.coordinator.cancel(job.id) is False
    assert await band.coordinator.cancel(finished.id) is False
    assert await band.coordinator.cancel(1) is False
    assert await contents(band.database) == before


async def test_a_late_report_for_a_cancelled_task_changes_nothing_but_its_history(band: Orchestra) -> None:
    job = await band.submit(make("first"))
    taken = await band.claim()
    await band.coordinator.cancel(job.id)
    before = await contents(band.database)
    assert (await band.complete(*taken)).accepted == set()
    assert (await band.fail(*taken)).accepted == set()
    after = await contents(band.database)
    assert [name for name in before if before[name] != after[name]] == ["events", "runs"]


async def test_a_job_without_tasks_can_be_cancelled(band: Orchestra) -> None:
    job = await band.submit(Group("g"))
    assert await band.coordinator.cancel(job.id) is True
    assert (await band.job(job)).status == JobStatus.CANCELLED


async def test_other_jobs_are_left_alone(band: Orchestra) -> None:
    mine, theirs = await band.submit(make("mine")), await band.submit(make("theirs"))
    await band.coordinator.cancel(mine.id)
    assert await band.ready_names() == ["theirs"]
    await band.drain()
    assert (await band.job(theirs)).status == JobStatus.COMPLETED


@SERVERS
async def test_of_two_who_cancel_at_once_one_does(band: Orchestra) -> None:
    for _ in range(5):
        job = await band.submit(*(make() for _ in range(20)))
        answers = await asyncio.gather(*(band.coordinator.cancel(job.id) for _ in range(3)))
        assert sorted(answers) == [False, False, True]
        assert await band.violations() == []


@SERVERS
async def test_a_cancel_and_completions_at_once_have_one_outcome(band: Orchestra) -> None:
    for _ in range(5):
        group = Group("g")
        for index in range(10):
            make(f"t{index}", group_id=group.id)
        job = await band.submit(group >> make("last"))
        taken = await band.claim()
        completing = asyncio.gather(*(band.complete(claim) for claim in taken))
        cancelled, receipts = await asyncio.gather(band.coordinator.cancel(job.id), completing)
        assert cancelled is True
        statuses = await band.statuses(job)
        accepted = {task for receipt in receipts for task, _ in receipt.accepted}
        for claim in taken:
            assert statuses[claim.name] == ("completed" if claim.task_id in accepted else "cancelled")
        assert await band.violations() == []


@SERVERS
async def test_a_cancel_and_claims_at_once_leave_no_claim_behind(band: Orchestra) -> None:
    for _ in range(5):
        job = await band.submit(*(make() for _ in range(50)))
        await asyncio.gather(*(band.claim(limit=7) for _ in range(4)), band.coordinator.cancel(job.id))
        assert set((await band.statuses(job)).values()) == {"cancelled"}
        assert await band.rows(select(claims)) == []
        assert await band.violations() == []


# ---------------------------------------------------------------- recount


async def test_recounting_mends_the_counters_of_groups_and_leaves_right_ones(band: Orchestra) -> None:
    job = await mixed_job(band)
    before = await contents(band.database)

    async def recount(session: Any) -> None:
        await recount_groups(session, job.id)

    await band.database.transact(recount)
    assert await contents(band.database) == before
    await band.database.transact(lambda session: session.run(update(groups).values(open_count=9, failed_count=9)))
    assert await band.violations() != []
    await band.database.transact(recount)
    assert await contents(band.database) == before


# ---------------------------------------------------------------- reserve


async def test_a_reserved_job_is_claimed_from_its_own_place_only(band: Orchestra) -> None:
    """Also what is tried again, and what is added later."""
    first, second = make("first", max_retries=1), make("second")
    first >> second
    job = await band.submit(first, second, make("beside"))
    other = await band.submit(make("other"))
    await band.coordinator.reserve(job.id, 77)
    assert [claim.name for claim in await band.claim()] == ["other"]
    assert await band.violations() == []
    taken = await band.claim(reserved_for=77)
    assert [claim.name for claim in taken] == ["first", "beside"]
    await band.fail(taken[0])
    await band.let_time_pass()
    await band.coordinator.reconcile()
    await band.apply(job, make("late"))
    assert await band.claim() == []
    assert [claim.name for claim in await band.claim(reserved_for=77)] == ["first", "late"]
    assert (await band.job(job)).reserved_for == 77
    assert (await band.job(other)).reserved_for == 0


async def test_what_is_claimed_when_its_job_is_reserved_comes_back_to_the_reserved_place(band: Orchestra) -> None:
    job = await band.submit(make("first", max_retries=1), make("second"))
    taken = await band.claim_named()
    await band.coordinator.reserve(job.id, 77)
    assert await band.violations() == []
    await band.fail(taken["first"])
    await band.coordinator.release(band.worker, [taken["second"]])
    await band.let_time_pass()
    await band.coordinator.reconcile()
    assert await band.claim() == []
    assert {claim.name for claim in await band.claim(reserved_for=77)} == {"first", "second"}


async def test_reserving_what_has_ended_or_is_not_there_changes_no_task(band: Orchestra) -> None:
    task = make()
    job = await band.submit(task)
    await band.drain()
    await band.coordinator.reserve(job.id, 77)
    await band.coordinator.reserve(1, 77)
    assert (await band.task(task)).reserved_for == 0
    assert await band.violations() == []


@SERVERS
async def test_a_claim_and_a_reserve_at_once_lose_no_task(band: Orchestra) -> None:
    for _ in range(5):
        made = [make(f"t{index}") for index in range(30)]
        job = await band.submit(*made)
        outside, _ = await asyncio.gather(band.claim(limit=10), band.coordinator.reserve(job.id, 77))
        inside = await band.claim(limit=100, reserved_for=77)
        assert sorted(claim.name for claim in (*outside, *inside)) == sorted(task.name for task in made)
        assert await band.violations() == []
        await band.complete(*outside, *inside)
