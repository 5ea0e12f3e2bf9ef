"""Runs that make tasks: these appear with the completion or not at all, and whoever waits waits for them too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from sqlalchemy import func, select

from aaiclick.config import reset_settings
from aaiclick.orchestration.coordinator import batches
from aaiclick.orchestration.models import Done, Group, Receipt, Task
from aaiclick.orchestration.models.children import NewEdge
from aaiclick.orchestration.results.task_results import Results
from aaiclick.orchestration.store.graphs import expansions
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.stored_results import read_named
from aaiclick.orchestration.store.tables import dependencies, groups, tasks
from tests.support.band import band, member
from tests.support.clearing import clear, finish
from tests.support.contents import contents
from tests.support.growing import grown
from tests.support.orchestra import Orchestra, done, failing, make

__all__ = ["band"]


async def stored(band: Orchestra, name: str) -> int:
    return int(await band.scalar(select(func.count()).select_from(tasks).where(tasks.c.name == name)))


# ---------------------------------------------------------------- with the completion


async def test_children_appear_with_the_completion_and_the_job_waits_for_them(band: Orchestra) -> None:
    job = await band.submit(make("parent"))
    (claim,) = await band.claim()
    a, b = make("a"), make("b")
    a >> b
    receipt = await band.report(grown(claim, a, b))
    assert receipt.accepted == {(claim.task_id, claim.epoch)}
    assert await band.ready_names() == ["a"]
    found = await band.job(job)
    assert (found.status, found.total_tasks, found.open_tasks, found.completed_tasks) == ("running", 3, 2, 1)
    child = await band.task(a)
    assert (child.parent_task_id, child.parent_epoch) == (claim.task_id, claim.epoch)
    assert await band.violations() == []
    assert await finish(band, job) == ["a", "b"]


async def test_a_failed_run_leaves_none_of_its_children(band: Orchestra) -> None:
    job = await band.submit(make("parent", max_retries=1))
    (claim,) = await band.claim()
    await band.fail(claim)
    await band.let_time_pass()
    await band.coordinator.reconcile()
    (again,) = await band.claim()
    before = await contents(band.database)
    late = await band.report(grown(claim, make("of the first run")))
    assert late.accepted == set()
    assert await contents(band.database) == before
    await band.report(grown(again, make("of the second run")))
    assert await finish(band, job) == ["of the second run"]


async def test_a_report_that_is_repeated_is_answered_alike_and_adds_nothing(band: Orchestra) -> None:
    job = await band.submit(make("parent"), make("other"))
    claims = await band.claim_named()
    report = grown(claims["parent"], make("child"))
    first = await band.report(report)
    assert (await band.report(report)).accepted == first.accepted == {(report.task_id, report.epoch)}
    assert await stored(band, "child") == 1
    await band.complete(claims["other"])
    assert await finish(band, job) == ["child"]


async def test_what_cannot_be_reported_at_once_does_not_hold_up_the_others(band: Orchestra) -> None:
    await band.submit(make("a"), make("b"), make("c"))
    claims = await band.claim_named()
    reports = [done(claims["a"]), grown(claims["b"], make("child")), done(claims["c"])]
    assert len((await band.report(*reports)).accepted) == 3
    assert await band.ready_names() == ["child"]


# ---------------------------------------------------------------- who waits


@pytest.mark.parametrize("count", [1, 3, expansions.EDGES_MAX + 1])
async def test_who_waits_for_a_task_waits_for_what_it_returned_and_receives_it(band: Orchestra, count: int) -> None:
    parent = make("parent")
    after = Task("some.module.after", {"x": parent}, name="after")
    job = await band.submit(parent, after)
    (claim,) = await band.claim()
    made = [make(f"child {number}") for number in range(count)]
    await band.report(grown(claim, *made, returns=made))
    claims = await band.claim(1000)
    assert len(claims) == count
    *all_but_last, last = claims
    await band.report(*(done(child, child.name.replace("child ", "")) for child in all_but_last))
    assert await band.ready_names() == []
    await band.complete(last)
    assert await band.violations() == []
    assert await finish(band, job) == ["after"]
    edges = await band.scalar(select(func.count()).select_from(dependencies))
    assert edges == (2 if count > expansions.EDGES_MAX else count + 1)


async def test_results_are_followed_through_tasks_that_return_tasks(band: Orchestra) -> None:
    parent = make("parent")
    after = Task("some.module.after", {"x": parent}, name="after")
    await band.submit(parent, after)
    for step in range(50):
        (claim,) = await band.claim()
        following = make(f"step {step}")
        await band.report(grown(claim, following, returns=following))
    (claim,) = await band.claim()
    await band.report(done(claim, '{"object_type":"pyobj","value":42}'))
    (claim,) = await band.claim()
    assert claim.name == "after"
    assert Results(claim.inputs, claim.members, claim.outputs).resolve("task", parent.id) == 42


async def test_children_are_part_of_the_group_of_the_task_that_made_them(band: Orchestra) -> None:
    group, after = Group("g"), make("after")
    parent = member(group, "parent")
    group >> after
    job = await band.submit(group, after)
    (claim,) = await band.claim()
    elsewhere = Group("elsewhere")
    child, inner = make("child"), member(elsewhere, "inner")
    await band.report(grown(claim, child, elsewhere, inner))
    assert (await band.task(child)).group_id == group.id
    assert await band.scalar(select(groups.c.parent_group_id).where(groups.c.id == elsewhere.id)) == group.id
    assert await band.ready_names() == ["child", "inner"]
    await band.complete(*await band.claim(1))
    assert await band.ready_names() == ["inner"]
    assert await finish(band, job) == ["inner", "after"]
    assert (await band.task(parent)).status == "completed"


async def test_a_group_gives_the_results_of_its_tasks_once_and_not_those_that_they_made(band: Orchestra) -> None:
    group = Group("g")
    member(group, "grows"), member(group, "stays")
    after = Task("some.module.after", {"x": group}, name="after")
    await band.submit(group, after)
    claims = await band.claim_named()
    child, aside = make("child"), make("aside")
    await band.report(
        grown(claims["grows"], child, aside, returns=child), done(claims["stays"], '{"object_type":"pyobj","value":2}')
    )
    for claim in await band.claim():
        await band.report(done(claim, f'{{"object_type":"pyobj","value":"{claim.name}"}}'))
    (claim,) = await band.claim()
    assert Results(claim.inputs, claim.members, claim.outputs).resolve("group", group.id) == ["child", 2]


async def test_a_group_with_an_output_gives_that(band: Orchestra) -> None:
    group = Group("g")
    member(group, "one")
    group.output = member(group, "two")
    after = Task("some.module.after", {"x": group}, name="after")
    await band.submit(group, after)
    for claim in await band.claim():
        await band.report(done(claim, f'{{"object_type":"pyobj","value":"{claim.name}"}}'))
    (claim,) = await band.claim()
    assert Results(claim.inputs, claim.members, claim.outputs).resolve("group", group.id) == "two"
    found = await band.database.read(lambda session: read_named(session, [claim.kwargs_json]))
    assert found.outputs == {group.id: group.output_task_id}


async def test_a_group_that_waits_for_a_task_waits_for_what_it_returned(band: Orchestra) -> None:
    parent, group = make("parent"), Group("g")
    member(group, "inside")
    parent >> group
    job = await band.submit(parent, group)
    (claim,) = await band.claim()
    child = make("child")
    await band.report(grown(claim, child, returns=[child]))
    assert await band.ready_names() == ["child"]
    assert await finish(band, job) == ["child", "inside"]


async def test_children_that_fail_doom_who_waits_for_the_parent(band: Orchestra) -> None:
    parent, after = make("parent"), make("after")
    parent >> after
    job = await band.submit(parent, after)
    (claim,) = await band.claim()
    child = make("child")
    await band.report(grown(claim, child, returns=child))
    await band.drain(failing("child"))
    assert await band.statuses(job) == {"parent": "completed", "child": "failed", "after": "upstream_failed"}
    assert (await band.job(job)).status == "failed"
    assert await band.violations() == []


async def test_who_was_doomed_meanwhile_waits_when_it_is_cleared(band: Orchestra) -> None:
    """Another predecessor failed first: the run still completes, and its child counts for a later retry."""
    parent, other, after = make("parent"), make("other"), make("after")
    [parent, other] >> after
    job = await band.submit(parent, other, after)
    claims = await band.claim_named()
    await band.fail(claims["other"])
    assert (await band.task(after)).status == "upstream_failed"
    child = make("child")
    assert (await band.report(grown(claims["parent"], child, returns=child))).accepted
    assert await band.violations(at_rest=False) == []
    await clear(band, other)
    assert await band.ready_names() == ["other", "child"]
    assert sorted(await finish(band, job)) == ["after", "child", "other"]


async def test_who_comes_late_waits_for_what_was_returned_at_any_distance(band: Orchestra) -> None:
    parent = make("parent")
    job = await band.submit(parent)
    (claim,) = await band.claim()
    first = make("first")
    await band.report(grown(claim, first, returns=first))
    (claim,) = await band.claim()
    group = Group("second")
    await band.report(grown(claim, group, member(group, "in second"), returns=group))
    late = Task("some.module.late", {"x": await band.task(parent)}, name="late")
    await band.apply(job, late)
    assert await band.ready_names() == ["in second"]
    assert await finish(band, job) == ["in second", "late"]


async def test_who_waits_for_a_group_waits_for_what_was_returned_into_another(band: Orchestra) -> None:
    group, other, after = Group("g"), Group("other"), make("after")
    member(group, "parent"), member(other, "beside")
    group >> after
    job = await band.submit(group, other, after)
    held = await band.claim_named()
    guest = make("guest", group_id=other.id)
    await band.report(grown(held["parent"], guest, returns=guest), done(held["beside"]))
    assert await band.ready_names() == ["guest"]
    assert await finish(band, job) == ["guest", "after"]


# ---------------------------------------------------------------- what cannot be


async def test_a_graph_that_cannot_be_fails_the_task_with_the_reason_and_leaves_nothing(band: Orchestra) -> None:
    names = ("cycle", "unknown", "foreign", "stays")
    job = await band.submit(*(make(name) for name in names))
    other = await band.submit(make("elsewhere"))
    claims = await band.claim_named()
    a, b = make("a"), make("b")
    a >> b
    cycle = grown(claims["cycle"], a, b)
    assert cycle.children is not None
    cycle = replace(
        cycle, children=replace(cycle.children, edges=[*cycle.children.edges, NewEdge(b.id, "task", a.id, "task")])
    )
    unknown = grown(claims["unknown"], make("in no group", group_id=77))
    foreign = grown(claims["foreign"], make("waits for another job's"))
    assert foreign.children is not None
    edge = NewEdge(claims["elsewhere"].task_id, "task", foreign.children.tasks[0].id, "task")
    foreign = replace(foreign, children=replace(foreign.children, edges=[edge]))
    before = await band.scalar(select(func.count()).select_from(tasks))
    assert len((await band.report(cycle, unknown, foreign)).accepted) == 3
    assert await band.scalar(select(func.count()).select_from(tasks)) == before
    said = {row.name: row.error for row in await band.rows(select(tasks.c.name, tasks.c.error))}
    assert "CircularDependencyError: These wait for each other" in said["cycle"]
    assert "UnknownNode" in said["unknown"]
    assert "CrossJobDependency" in said["foreign"]
    assert (await band.job(other)).status == "running"
    assert (await band.job(job)).failed_tasks == 3
    assert await band.violations() == []


async def test_a_job_has_no_more_tasks_than_it_may(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await band.submit(make("parent"))
    (claim,) = await band.claim()
    monkeypatch.setenv("AAICLICK_JOB_TASKS_MAX", "3")
    reset_settings()
    try:
        await band.report(grown(claim, *(make("child") for _ in range(3))))
    finally:
        monkeypatch.undo()
        reset_settings()
    found = await band.job(job)
    assert (found.status, found.total_tasks) == ("failed", 1)
    assert "AAICLICK_JOB_TASKS_MAX" in (found.error or "")


# ---------------------------------------------------------------- kept results


async def test_what_the_jobs_result_names_is_kept_and_so_is_what_that_returns(band: Orchestra) -> None:
    parent, aside = make("parent"), make("aside")
    job_options = {"name": "job"}
    job = await band.submit_returning(parent, parent, aside, **job_options)
    claims = await band.claim_named()
    returned, group, beside = make("returned"), Group("g"), make("beside")
    inner = member(group, "inner")
    await band.report(
        grown(claims["parent"], returned, group, inner, beside, returns=[returned, group]), done(claims["aside"])
    )
    kept = {row.name for row in await band.rows(select(tasks.c.name).where(tasks.c.kept.is_(True)))}
    assert kept == {"parent", "returned", "inner"}
    await finish(band, job)


# ---------------------------------------------------------------- several at a time


async def test_runs_of_one_job_that_grow_are_taken_together(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    real = expansions.complete_with_children

    async def complete(session: Session, worker_id: int, dones: Sequence[Done]) -> Receipt:
        taken.append(len(dones))
        return await real(session, worker_id, dones)

    monkeypatch.setattr(batches, "complete_with_children", complete)
    parents = [make(f"parent {number}") for number in range(5)]
    after = Task("some.module.after", {"x": list(parents)}, name="after")
    job = await band.submit(*parents, after)
    other = await band.submit(make("of another job"))
    claims = await band.claim()
    made = [make(f"child of {claim.name}") for claim in claims]
    reports = [grown(claim, child, returns=child) for claim, child in zip(claims, made, strict=True)]
    assert len((await band.report(*reports)).accepted) == 6
    assert sorted(taken) == [1, 5]
    assert await band.violations() == []
    assert [name for name in await finish(band, job) if name == "after"] == ["after"]
    assert (await band.job(other)).status == "completed"


async def test_of_several_that_grow_one_that_is_lost_and_one_that_cannot_be_do_not_spoil_the_rest(
    band: Orchestra,
) -> None:
    fine, lost, wrong = make("fine"), make("lost", max_retries=1), make("wrong")
    job = await band.submit(fine, lost, wrong)
    held = await band.claim_named()
    await clear(band, lost)
    child = make("child")
    reports = [
        grown(held["fine"], child, returns=child),
        grown(held["lost"], make("of the lost")),
        grown(held["wrong"], make("nowhere", group_id=77)),
    ]
    accepted = (await band.report(*reports)).accepted
    assert accepted == {(fine.id, held["fine"].epoch), (wrong.id, held["wrong"].epoch)}
    assert await band.violations() == []
    assert sorted(await finish(band, job, "failed")) == ["child", "lost"]


async def test_many_children_are_not_taken_with_others(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "GROWTH_MAX", 4)
    await band.submit(*(make(f"parent {number}") for number in range(3)))
    claims = await band.claim()
    sizes = (2, 5, 1)
    reports = [grown(claim, *(make("c") for _ in range(size))) for claim, size in zip(claims, sizes, strict=True)]
    assert [len(together) for together in batches._growths(reports)] == [1, 1, 1]
    assert [len(together) for together in batches._growths([*reports[2:], *reports[:1]])] == [1, 1]
    monkeypatch.setattr(batches, "GROWTH_MAX", 5)
    assert [len(together) for together in batches._growths([*reports[2:], *reports[:1]])] == [2]
