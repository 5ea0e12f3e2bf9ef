"""Groups: what is made inside a `with` block, nesting, and reading what they hold."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from aaiclick.errors import CircularDependencyError, InputError
from aaiclick.orchestration.models import Group, Task
from aaiclick.orchestration.models.node import Node, current_group
from aaiclick.orchestration.store.tables import groups


def task(name: str = "t", **options: Any) -> Task:
    return Task("some.module.f", name=name, **options)


def test_a_group_is_named_and_may_be_told_its_parent() -> None:
    outer = Group(name="outer")
    inner = Group(name="inner", parent_group_id=outer.id)
    assert (outer.name, outer.parent_group_id, outer.parent_group) == ("outer", None, None)
    assert (inner.parent_group_id, inner.parent_group) == (outer.id, outer)
    assert outer.child_groups == [inner]
    assert outer.is_complete


@pytest.mark.parametrize("name", ["", " a", "a\0b", "x" * 201, "a\nb", None, 7])
def test_a_name_that_cannot_be_one_is_refused(name: Any) -> None:
    with pytest.raises(InputError, match="Group name"):
        Group(name)


def test_a_task_joins_by_the_groups_id() -> None:
    group = Group("g")
    first, second = task("first", group_id=group.id), task("second")
    second.group_id = group.id
    assert group.tasks == [first, second]
    assert first.group is second.group is group


def test_a_member_that_joins_twice_or_comes_back_is_there_once() -> None:
    one, other = Group("one"), Group("other")
    member, inner = task(), Group("inner")
    for group in (one, one, other, one):
        member.group_id = inner.parent_group_id = group.id
    assert one.tasks == [member]
    assert one.child_groups == [inner]
    assert other.tasks == []
    assert other.child_groups == []
    member.group_id = None
    assert one.tasks == []
    assert member.group is None


# ---------------------------------------------------------------- with


def test_what_is_made_inside_the_block_is_in_the_group() -> None:
    before = task("before")
    with Group("g") as group:
        first, inner = task("first"), Group("inner")
    after = task("after")
    assert group.tasks == [first]
    assert group.child_groups == [inner]
    assert before.group_id is after.group_id is None


def test_blocks_nest() -> None:
    with Group("outer") as outer:
        first = task("first")
        with Group("inner") as inner:
            second = task("second")
            with outer:  # back to the one around, for a moment
                third = task("third")
            fourth = task("fourth")
        fifth = task("fifth")
    assert outer.tasks == [first, third, fifth]
    assert inner.tasks == [second, fourth]
    assert outer.child_groups == [inner]
    assert current_group.get() is None


def test_who_says_which_group_is_not_overruled_by_the_block() -> None:
    elsewhere = Group("elsewhere")
    with Group("g") as group:
        there = task("there", group_id=elsewhere.id)
        inner = Group("inner", parent_group_id=elsewhere.id)
    assert group.tasks == []
    assert group.child_groups == []
    assert elsewhere.tasks == [there]
    assert elsewhere.child_groups == [inner]


def test_a_block_that_raises_is_left_all_the_same() -> None:
    group = Group("g")
    with pytest.raises(InputError), group, Group("inner"):
        task("x" * 201)
    assert current_group.get() is None
    assert task().group_id is None


def test_the_same_block_may_be_entered_again() -> None:
    group = Group("g")
    with group:
        with group:
            first = task("first")
        second = task("second")
    with group:
        third = task("third")
    assert group.tasks == [first, second, third]
    assert current_group.get() is None


async def test_the_same_block_may_be_entered_by_two_coroutines_at_once() -> None:
    shared, around = Group("shared"), Group("around")
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def first() -> Group | None:
        with around:
            with shared:
                entered.set()
                await go_on.wait()
                task("of the first")
            return current_group.get()

    async def second() -> Group | None:
        await entered.wait()
        with shared:
            go_on.set()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            task("of the second")
        return current_group.get()

    assert await asyncio.gather(first(), second()) == [around, None]  # type: ignore[comparison-overlap]
    assert {member.name for member in shared.tasks} == {"of the first", "of the second"}
    assert around.tasks == []


# ---------------------------------------------------------------- containment


def test_a_group_is_not_its_own_parent() -> None:
    group = Group("g")
    with pytest.raises(CircularDependencyError, match="group 'g' → group 'g'"):
        group.parent_group_id = group.id


def test_groups_of_groups_know_each_other() -> None:
    outer, middle, inner = Group("outer"), Group("middle"), Group("inner")
    inner.parent_group_id = middle.id
    middle.parent_group_id = outer.id
    assert inner.parent_group is middle
    assert middle.parent_group is outer
    assert outer.child_groups == [middle]


def test_an_older_name_of_the_name() -> None:
    assert Group("g").description == "g"


# ---------------------------------------------------------------- as the database has it


def row(**facts: Any) -> SimpleNamespace:
    row = {"id": 7, "job_id": 3, "parent_group_id": 5, "name": "g", "depth": 2, "unmet_count": 1, "open_count": 4}
    row |= {"failed_count": 1, "dependents_count": 2, "created_at": None, "output_task_id": 11, "parent_task_id": 12}
    row |= {"unended_count": 3, "awaited_count": 2, "amiss": True, "trigger_rule": "one_failed", "lane": 4}
    return SimpleNamespace(**(row | facts))


def test_a_group_and_its_row_have_the_same_fields() -> None:
    own = {name for kind in (Group, Node) for name in kind.__slots__ if not name.startswith("_")}
    in_memory_only, computed = {"applied", "members", "needs"}, {"parent_group_id"}
    columns = {"when" if column.name == "trigger_rule" else column.name for column in groups.columns}
    assert own - in_memory_only == columns - computed


def test_a_group_that_is_read_has_every_column() -> None:
    read = Group.from_row(row())
    assert vars(row()) == {
        column.name: read.when if column.name == "trigger_rule" else getattr(read, column.name)
        for column in groups.columns
    }
    assert read.applied
    assert not read.is_complete


def test_reading_a_group_does_not_push_aside_the_one_that_was_built() -> None:
    built = Group("g")
    Group.from_row(row(id=built.id))
    assert task(group_id=built.id).group is built


def test_what_is_made_inside_the_block_of_a_read_group_is_brought_by_it() -> None:
    built = Group("g")
    read = Group.from_row(row(id=built.id))
    with read:
        made = task()
    assert made.group is read
    assert made in read.members
