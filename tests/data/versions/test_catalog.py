"""Which versions there are, and which counts."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.data import Context, list_versions, open_object
from aaiclick.data.clients.contract import DataClient, Rows, Settings
from aaiclick.data.versions.catalog import facts_in, latest_versions, locate, locate_all
from aaiclick.errors import ObjectNotFound


async def test_an_object_without_versions_is_its_own_first(context: Context, name: str) -> None:
    await context.create_object_from_value([1, 2], name=name)
    (only,) = await list_versions(name)
    assert (only.number, only.made_at, only.operation, only.rows, only.is_plain) == (1, None, "create", 2, True)
    assert await (await open_object(name, version=1)).data() == [1, 2]


async def test_what_is_known_of_a_version(context: Context, name: str) -> None:
    rows = await context.create_object_from_value({"id": [1, 2]}, name=name)
    await rows.upsert({"id": [2, 3]}, key="id")
    first, second = await list_versions(name)
    assert (first.table, second.table) == (f"p_{name}@1", f"p_{name}@2")
    assert (second.operation, second.rows, second.before) == ("upsert", 3, [first.mark])
    assert second.made_at is not None
    assert (await latest_versions(context.client, "p_"))[f"p_{name}"].number == 2
    assert (await context.list_objects()).count(name) == 1


async def test_a_reference_from_before_finds_the_latest(context: Context, name: str) -> None:
    rows = await context.create_object_from_value({"id": [1]}, name=name)
    reference = rows.reference()
    await rows.upsert({"id": [2]}, key="id")
    assert await (await context.open_reference(reference)).count() == 2
    assert await (await context.open_reference(rows.reference())).count() == 2
    assert await locate_all(context.client, ["p_nothing_of_that_name", "c1_1"]) == {}


async def test_what_is_not_there(context: Context) -> None:
    with pytest.raises(ObjectNotFound):
        await list_versions("nothing_of_that_name")


@pytest.mark.parametrize("comment", ["", "no JSON", "[]", "7"])
def test_a_comment_of_others_tells_nothing(comment: str) -> None:
    assert facts_in(comment) == {}


class RenamedMeanwhile:
    """A client whose first look at the tables comes as one of them is renamed: ClickHouse leaves it out."""

    def __init__(self, client: DataClient) -> None:
        self._client = client
        self.looks = 0

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._client, verb)

    async def rows(self, sql: str, settings: Settings | None = None) -> Rows:
        found = await self._client.rows(sql, settings)
        self.looks += 1
        return found._replace(columns=[[] for _ in found.columns]) if self.looks == 1 else found


async def test_an_object_that_gets_its_first_version_meanwhile_is_found(context: Context, name: str) -> None:
    await context.create_object_from_value([1, 2], name=name)
    found = await locate(RenamedMeanwhile(context.client), f"p_{name}")
    assert found is not None
    assert found.table == f"p_{name}"
