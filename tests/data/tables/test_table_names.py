"""The names of Objects that stay, and of their tables."""

from __future__ import annotations

import pytest

from aaiclick.data import Context
from aaiclick.data.tables.table_names import (
    NAME_LENGTH_MAX,
    name_of,
    persistent_table,
    scope_of,
    version_in,
    version_table,
    without_version,
)
from aaiclick.errors import InputError

LONGEST = ["a" * NAME_LENGTH_MAX, "a" + "." * 49, "_" + "-" * 49]


def test_a_name_is_for_everybody_or_for_a_job() -> None:
    assert persistent_table("a.b-c_1", "global", None) == "p_a.b-c_1"
    assert persistent_table("a", "job", 7) == "j7_a"
    assert name_of("p_a") == "a"
    assert name_of("c1_2") is None


@pytest.mark.parametrize("name", ["", "1a", "a b", "é", "a`", "a" * (NAME_LENGTH_MAX + 1), "a" + "." * 50, None, 3])
def test_a_name_that_no_table_can_have_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="a letter, then letters"):
        persistent_table(name, "global", None)


def test_a_scope_is_checked() -> None:
    with pytest.raises(InputError, match="it must be global, job or temporary"):
        persistent_table("a", "all", None)
    with pytest.raises(InputError, match="it is not called inside a job"):
        persistent_table("a", "job", None)


@pytest.mark.parametrize("name", LONGEST)
async def test_clickhouse_takes_the_longest_names(context: Context, name: str) -> None:
    made = await context.create_object_from_value([1], name=name)
    assert await (await context.open_object(name)).data() == [1]
    await context.client.command(f"DROP TABLE `{made.table}` SYNC")


def test_a_version_has_its_number_behind_a_sign_that_no_name_has() -> None:
    table = version_table(persistent_table("a.b", "global", None), 12)
    assert (table, version_in(table), without_version(table), name_of(table)) == ("p_a.b@12", 12, "p_a.b", "a.b")
    assert scope_of(version_table("j7_x", 1)) == "job"
    assert [version_in(each) for each in ("p_a", "p_a@", "p_a@x", "p_a@01", "p_a@1@2")] == [None] * 5
    with pytest.raises(InputError):
        persistent_table("a@1", "global", None)
