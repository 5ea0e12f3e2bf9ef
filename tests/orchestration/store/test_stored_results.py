"""Reading results: what a text names, and what that names in turn."""

from __future__ import annotations

from sqlalchemy import update

from aaiclick.orchestration.models import Group, Task
from aaiclick.orchestration.results.task_results import encode_returned
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.stored_results import FoundResults, read_named, returned_by
from aaiclick.orchestration.store.tables import tasks
from tests.support.band import band, member
from tests.support.orchestra import Orchestra, make

__all__ = ["band"]


async def store_result(band: Orchestra, task: Task, value: object) -> str:
    text, _ = encode_returned(value)

    async def work(session: Session) -> None:
        await session.run(update(tasks).where(tasks.c.id == task.id).values(result=text))

    await band.database.transact(work)
    return text


async def named(band: Orchestra, value: object) -> FoundResults:
    text, _ = encode_returned(value)
    return await band.database.read(lambda session: read_named(session, [text]))


async def test_plain_values_name_nothing(band: Orchestra) -> None:
    assert await named(band, {"a": [1, "task"]}) == FoundResults()


async def test_results_are_followed_to_the_last(band: Orchestra) -> None:
    a, b, c, aside = (make(name) for name in ("a", "b", "c", "aside"))
    await band.submit(a, b, c, aside)
    texts = {
        a.id: await store_result(band, a, [b, b]),
        b.id: await store_result(band, b, {"x": c}),
        c.id: await store_result(band, c, 5),
    }
    assert (await named(band, [a])).texts == texts
    assert (await named(band, c)).texts == {c.id: texts[c.id]}


async def test_what_names_each_other_is_read_once(band: Orchestra) -> None:
    a, b = make("a"), make("b")
    await band.submit(a, b)
    await store_result(band, a, b)
    await store_result(band, b, a)
    assert set((await named(band, a)).texts) == {a.id, b.id}
    found = await band.database.read(lambda session: returned_by(session, {("task", a.id)}, {}))
    assert found == {a.id: {("task", b.id): set(), ("task", a.id): set()}}


async def test_a_group_gives_its_tasks_at_any_depth_or_its_output(band: Orchestra) -> None:
    outer, inner, other = Group("outer"), Group("inner"), Group("other")
    inner.parent_group_id = outer.id
    first, second = member(outer, "first"), member(inner, "second")
    third, fourth = member(other, "third"), member(other, "fourth")
    other.output = third
    await band.submit(outer, inner, other)
    found = await named(band, [outer, other])
    assert found.members == {outer.id: [first.id, second.id]}
    assert found.outputs == {other.id: third.id}
    assert set(found.texts) == {first.id, second.id, third.id}
    assert fourth.id not in found.texts


async def test_a_group_that_is_gone_is_not_one_without_members(band: Orchestra) -> None:
    group = Group("never stored")
    assert (await named(band, group)).members == {}


async def test_only_who_returned_tasks_is_told(band: Orchestra) -> None:
    a, b, plain, group = make("a"), make("b"), make("plain"), Group("g")
    await band.submit(a, b, plain, group)
    await store_result(band, a, [b, 1])
    await store_result(band, b, group)
    await store_result(band, plain, 3)
    asked = {("task", a.id), ("task", plain.id)}
    found = await band.database.read(lambda session: returned_by(session, asked, {group.id: None}))
    assert found == {a.id: {("task", b.id): set(), ("group", group.id): set()}}


async def test_what_tasks_of_groups_returned_is_told_unless_it_is_inside(band: Orchestra) -> None:
    outer, inner, other = Group("outer"), Group("inner"), Group("other")
    inner.parent_group_id = outer.id
    first, second = member(outer, "first"), member(inner, "second")
    third, fourth, plain = member(other, "third"), make("fourth"), make("plain")
    await band.submit(outer, inner, other, fourth, plain)
    await store_result(band, first, second)
    await store_result(band, second, [third, 1])
    await store_result(band, third, [other, fourth])
    parents = {outer.id: None, inner.id: outer.id, other.id: None}
    asked = {("group", outer.id), ("group", other.id), ("task", plain.id)}
    found = await band.database.read(lambda session: returned_by(session, asked, parents))
    assert found == {
        outer.id: {("group", other.id): set(), ("task", fourth.id): set()},
        other.id: {("group", other.id): set(), ("task", fourth.id): set()},
    }
