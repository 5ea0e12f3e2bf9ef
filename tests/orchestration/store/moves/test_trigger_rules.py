"""Tasks and groups that run after partial failure, on each database."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from aaiclick.errors import AlreadyStarted, GroupComplete
from aaiclick.orchestration.models import Group, Task
from aaiclick.orchestration.store.moves import ripples
from aaiclick.orchestration.store.tables import events
from tests.support.band import band, member
from tests.support.growing import grown
from tests.support.orchestra import Orchestra, failing, make

__all__ = ["band"]


async def statuses_after(band: Orchestra, when: str, *, fail: tuple[str, ...]) -> tuple[str, str]:
    """What comes of a task behind two others, and of its job."""
    one, two, last = make("one", critical=False), make("two", critical=False), make("last", when=when)
    last << [one, two]
    job = await band.submit(one, two, last)
    await band.drain(failing(*fail))
    assert not await band.violations()
    return (await band.statuses(job))["last"], (await band.job(job)).status


@pytest.mark.parametrize(
    ("when", "none", "some", "both"),
    [
        ("all_completed", "completed", "upstream_failed", "upstream_failed"),
        ("none_failed", "completed", "upstream_failed", "upstream_failed"),
        ("all_done", "completed", "completed", "completed"),
        ("always", "completed", "completed", "completed"),
        ("one_completed", "completed", "completed", "upstream_failed"),
        ("one_failed", "skipped", "completed", "completed"),
    ],
)
async def test_each_rule_after_no_failure_one_and_two(
    band: Orchestra, when: str, none: str, some: str, both: str
) -> None:
    for status, fail in ((none, ()), (some, ("one",)), (both, ("one", "two"))):
        job_status = "failed" if status == "upstream_failed" else "completed"
        assert await statuses_after(band, when, fail=fail) == (status, job_status)


async def test_all_done_waits_for_the_last_end_and_one_failed_does_not(band: Orchestra) -> None:
    one, two, three = (make(name, critical=False) for name in ("one", "two", "three"))
    done_, alert, first = (
        make("done", when="all_done"),
        make("alert", when="one_failed"),
        make("f", when="one_completed"),
    )
    for task in (done_, alert, first):
        task << [one, two, three]
    await band.submit(one, two, three, done_, alert, first)
    claims = await band.claim_named()
    await band.fail(claims["one"])
    assert await band.ready_names() == ["alert"]
    await band.complete(claims["two"])
    assert sorted(await band.ready_names()) == ["alert", "f"]
    await band.complete(*(await band.claim()))
    await band.complete(claims["three"])
    assert await band.ready_names() == ["done"]
    assert not await band.violations()
    await band.drain()
    assert len(await band.rows(select(events).where(events.c.task_id == alert.id, events.c.move == "claim"))) == 1


async def test_an_input_that_will_be_tried_again_has_not_ended(band: Orchestra) -> None:
    flaky, alert = make("flaky", max_retries=1, critical=False), make("alert", when="one_failed")
    flaky >> alert
    job = await band.submit(flaky, alert)
    (claim,) = await band.claim()
    await band.fail(claim)
    assert (await band.statuses(job)) == {"flaky": "pending", "alert": "pending"}
    await band.let_time_pass()
    await band.drain()
    assert (await band.statuses(job)) == {"flaky": "completed", "alert": "skipped"}
    assert (await band.job(job)).status == "completed"
    assert not await band.violations()


async def test_what_is_skipped_satisfies_and_is_not_a_completion(band: Orchestra) -> None:
    fine, alert = make("fine"), make("alert", when="one_failed")
    plain, one = make("plain"), make("one", when="one_completed")
    fine >> alert >> [plain, one]
    job = await band.submit(fine, alert, plain, one)
    await band.drain()
    found = await band.job(job)
    assert await band.statuses(job) == {"fine": "completed", "alert": "skipped", "plain": "completed", "one": "skipped"}
    assert (found.status, found.completed_tasks, found.skipped_tasks, found.open_tasks) == ("completed", 2, 2, 0)
    assert not await band.violations()


async def test_a_job_of_which_nothing_is_needed_is_completed(band: Orchestra) -> None:
    job = await band.submit(make("alert", when="one_failed"))
    assert (await band.job(job)).status == "completed"
    assert await band.statuses(job) == {"alert": "skipped"}
    assert not await band.violations()


@pytest.mark.parametrize("step", [2_000, 1])
@pytest.mark.parametrize(
    ("when", "fail", "inside"),
    [
        ("one_failed", False, "skipped"),
        ("one_failed", True, "completed"),
        ("all_done", True, "completed"),
        ("none_failed", True, "upstream_failed"),
    ],
)
async def test_a_group_opens_by_its_rule_or_not_at_all(
    band: Orchestra, when: Any, fail: bool, inside: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripples, "STEP", step)
    first, group, after = make("first", critical=False), Group("g", when=when), make("after", when="always")
    inner = Group("inner", parent_group_id=group.id)
    member(group, "a"), member(inner, "b")
    first >> group >> after
    job = await band.submit(first, group, after)
    await band.drain(failing("first") if fail else failing())
    statuses = await band.statuses(job)
    assert (statuses["a"], statuses["b"], statuses["after"]) == (inside, inside, "completed")
    assert not await band.violations()


async def test_a_group_ends_with_its_last_task_and_fails_with_its_first(band: Orchestra) -> None:
    group, done_, alert = Group("g"), make("done", when="all_done"), make("alert", when="one_failed")
    inner = Group("inner", parent_group_id=group.id)
    make("bad", group_id=inner.id, critical=False), make("slow", group_id=inner.id, priority=-1)
    done_ << [group]
    alert << [group]
    await band.submit(group, done_, alert)
    claims = await band.claim_named()
    await band.fail(claims["bad"])
    assert await band.ready_names() == ["alert"]
    await band.complete(claims["slow"])
    assert sorted(await band.ready_names()) == ["alert", "done"]
    assert not await band.violations()


async def test_a_group_whose_end_is_told_before_its_failure_has_failed(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That it failed was put off; its end was not: who waits for one failure was taken for not needed."""

    async def later(*_: object) -> bool:
        return False

    group = Group("g")
    make("bad", group_id=group.id, critical=False), make("good", group_id=group.id)
    alert, first = make("alert", when="one_failed"), make("first", when="one_completed")
    group >> alert
    group >> first
    job = await band.submit(group, alert, first)
    claims = await band.claim_named()
    with monkeypatch.context() as little:
        little.setattr(ripples, "STEP", 0)
        little.setattr(ripples, "work_one_ripple", later)
        await band.fail(claims["bad"])
        assert await band.ripples()
        little.setattr(ripples, "STEP", 10)
        await band.complete(claims["good"])
    await band.drain()
    assert await band.statuses(job) == {
        "bad": "failed",
        "good": "completed",
        "alert": "completed",
        "first": "upstream_failed",
    }
    assert not await band.violations()


# ---------------------------------------------------------------- graphs that grow


async def test_an_input_that_has_ended_counts_for_what_is_added(band: Orchestra) -> None:
    bad, fine = make("bad", critical=False), make("fine")
    job = await band.submit(bad, fine, make("keeps open", priority=-1))
    claims = await band.claim_named(2)
    await band.fail(claims["bad"])
    await band.complete(claims["fine"])
    rules = ("all_done", "always", "none_failed", "one_failed", "one_completed")
    late = {when: make(when, when=when, critical=False) for when in rules}
    for task in late.values():
        task << [bad, fine]
    await band.apply(job, *late.values())
    statuses = await band.statuses(job)
    assert {when: statuses[when] for when in late} == {
        **dict.fromkeys(("all_done", "always", "one_failed", "one_completed"), "pending"),
        "none_failed": "upstream_failed",
    }
    assert sorted(await band.ready_names()) == ["all_done", "always", "keeps open", "one_completed", "one_failed"]
    assert not await band.violations()


async def test_a_task_that_waits_for_its_one_may_get_it_by_a_new_edge(band: Orchestra) -> None:
    bad, slow, alert = make("bad", critical=False), make("slow", priority=-1), make("alert", when="one_failed")
    slow >> alert
    job = await band.submit(bad, slow, alert)
    (claim,) = await band.claim(1)
    await band.fail(claim)
    bad >> alert
    await band.apply(job, bad, alert)
    assert "alert" in await band.ready_names()
    assert not await band.violations()


async def test_what_had_its_one_and_began_cannot_be_made_to_wait(band: Orchestra) -> None:
    one, two, first = make("one"), make("two"), make("first", when="one_completed", priority=5)
    first << [one]
    job = await band.submit(one, two, first)
    claims = await band.claim_named()
    await band.complete(claims["one"])
    await band.claim(1)
    two >> first
    with pytest.raises(AlreadyStarted):
        await band.apply(job, two, first)
    assert not await band.violations()


async def test_a_run_that_returns_tasks_does_not_trip_over_who_had_its_one(band: Orchestra) -> None:
    one, two, first = make("one"), make("two"), make("first", when="one_completed")
    first << [one, two]
    job = await band.submit(one, two, first)
    claims = await band.claim_named()
    await band.complete(claims["one"])
    await band.complete(*(await band.claim()))
    child = make("child")
    await band.report(grown(claims["two"], child, returns=[child]))
    await band.drain()
    assert set((await band.statuses(job)).values()) == {"completed"}
    assert (await band.job(job)).status == "completed"
    assert not await band.violations()


async def test_a_group_that_has_ended_and_is_waited_for_gets_no_more(band: Orchestra) -> None:
    group, after = Group("g"), make("after", when="all_done")
    make("bad", group_id=group.id, critical=False)
    group >> after
    job = await band.submit(group, after, make("keeps open", priority=-1))
    (claim,) = await band.claim(1)
    await band.fail(claim)
    assert "after" in await band.ready_names()
    with pytest.raises(GroupComplete):
        await band.apply(job, make("late", group_id=group.id))
    assert not await band.violations()


async def test_who_joins_a_group_that_is_not_needed_is_skipped(band: Orchestra) -> None:
    fine, group = make("fine", priority=1), Group("g", when="one_failed")
    member(group, "inside")
    fine >> group
    job = await band.submit(fine, group, make("keeps open"))
    (claim,) = await band.claim(1)
    await band.complete(claim)
    await band.apply(job, make("late", group_id=group.id))
    statuses = await band.statuses(job)
    assert (statuses["inside"], statuses["late"]) == ("skipped", "skipped")
    assert not await band.violations()


async def test_who_joins_a_group_that_was_not_needed_is_skipped_whatever_failed_since(band: Orchestra) -> None:
    bad, group = make("bad", critical=False, priority=1), Group("g", when="one_failed")
    job = await band.submit(bad, group, make("keeps open"))
    await band.fail(*(await band.claim(1)))
    bad >> group
    await band.apply(job, bad, group)
    await band.apply(job, make("late", group_id=group.id))
    assert (await band.statuses(job))["late"] == "skipped"
    assert not await band.violations()


# ---------------------------------------------------------------- what arrives


async def inputs_of(band: Orchestra, task: Task) -> Any:
    (claim,) = [claim for claim in await band.claim() if claim.task_id == task.id]
    return claim.inputs


async def test_the_claim_tells_what_became_of_inputs_that_have_no_result(band: Orchestra) -> None:
    bad, fine, slow = make("bad", critical=False), make("fine"), make("slow", priority=-1)
    first = Task("some.module.f", {"x": [bad, fine, slow]}, name="first", when="one_completed")
    await band.submit(bad, fine, slow, first)
    claims = await band.claim_named()
    await band.fail(claims["bad"])
    await band.complete(claims["fine"])
    inputs = await inputs_of(band, first)
    assert inputs[slow.id] is None
    assert inputs[fine.id] == "null"
    assert '"type": "ValueError", "message": "no"' in inputs[bad.id]
