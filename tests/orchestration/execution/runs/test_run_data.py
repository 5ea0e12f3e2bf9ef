"""The Objects of a run: what wants one, what holds one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Optional

import pyarrow as pa
import pytest

from aaiclick import data
from aaiclick.data import Object, View
from aaiclick.orchestration import Failed, TaskResult
from aaiclick.orchestration.execution.runs import run_data as module
from aaiclick.orchestration.execution.runs.run_data import (
    RunData,
    holds_data,
    key_of,
    refers_to_objects,
    wanting_objects,
)
from aaiclick.orchestration.models import CacheAnswer, CacheKey, Claim, Done
from aaiclick.orchestration.rules.values.encoding import encode_value
from tests.support import bodies
from tests.support.bodies import claim_of
from tests.support.front_door import local

__all__ = ["local"]


def claim() -> Claim:
    return Claim(11, 2, 1, 5, None, "t", "m.f", "{}", 0, None, 0, {}, {})


def by_class(a: Object, b: int, c: "View", d: "data.Object | None", e: Object | None, f: Optional[View]) -> Object:  # noqa: UP037, UP045
    return a


def of_several(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, i: Any) -> None: ...


of_several.__annotations__ = {
    "a": list[Object],
    "b": "dict[str, data.Object]",
    "c": Object | Failed,
    "d": "Union[Failed, 'View']",
    "e": "typing.Optional[data.Object]",
    "f": Annotated[Object, "rows"],
    "g": "list[Object] | None",
    "h": "an Object",
    "i": "Literal['x']",
    "return": Object,
}


def test_parameters_that_are_annotated_as_objects_are_found() -> None:
    assert wanting_objects(by_class) == {"a", "c", "d", "e", "f"}
    assert wanting_objects(of_several) == {"c", "d", "e", "f"}
    assert wanting_objects(len) == frozenset()
    assert wanting_objects(lambda x: x) == frozenset()


@pytest.mark.parametrize("value", [None, 1, "x", [1, 2], {"a": [1]}, (), object(), {"object_type": "object"}])
def test_plain_values_hold_nothing(value: Any) -> None:
    assert not holds_data(value)


@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: [v], lambda v: {"a": (v,)}, lambda v: TaskResult(data=v)])
def test_frames_are_found_wherever_they_are(wrap: Any) -> None:
    assert holds_data(wrap(pa.table({"a": [1]})))


def nested(value: Any, levels: int) -> Any:
    for level in range(levels):
        value = [value] if level % 2 else {"a": (value,)}
    return value


def test_frames_are_found_however_deep_they_are_and_what_contains_itself_is_looked_at_once() -> None:
    assert holds_data(nested(pa.table({"a": [1]}), 90))
    endless: list[Any] = []
    endless += [endless, endless]
    assert not holds_data(nested(endless, 90))


async def test_a_table_that_is_returned_deep_inside_of_a_value_stays(local: Any) -> None:
    """Its reference is part of the result: dropped with the run, nobody could open it."""
    run = RunData(claim())
    made = await (await run.context()).create_object_from_value([1, 2])
    await run.lower(nested(made, 30))
    endless: list[Any] = [made]
    endless += [endless, endless]
    await run.lower(endless)
    table = made.table
    del made, endless
    await run.end()
    async with data.data_context() as context:
        found = await context.client.rows("SELECT name FROM system.tables WHERE database = currentDatabase()")
        assert table in found.columns[0]


def test_the_same_reference_has_the_same_key() -> None:
    assert key_of("view", {"table": "t", "limit": 1}) == key_of("view", {"limit": 1, "table": "t"})
    assert key_of("view", {"table": "t"}) != key_of("object", {"table": "t"})


async def test_nothing_is_opened_before_it_is_needed(local: Any) -> None:
    run = RunData(claim())
    assert not refers_to_objects(claim())
    assert await run.lower([1, 2]) == [1, 2]
    assert not run.is_open
    await run.end()
    assert not (local / "chdb_data").exists()


@pytest.mark.parametrize("value", ["object", ["view"], {"object": 1}, {"object_type": "object", "table": "t"}])
def test_texts_refer_to_nothing(value: Any) -> None:
    assert not refers_to_objects(claim_of(bodies.echo, value=value))
    assert not refers_to_objects(replace(claim(), inputs={3: encode_value(value, bytes_max=1000)}))


def test_references_are_found_in_arguments_and_in_results() -> None:
    text = '{"object_type": "view", "table": "t", "limit": 1}'
    assert refers_to_objects(replace(claim(), inputs={3: text}))
    assert refers_to_objects(replace(claim(), kwargs_json=f'{{"value": {text}}}'))


async def test_tables_carry_the_numbers_of_the_run_and_stay_if_they_are_returned(local: Any) -> None:
    run = RunData(claim())
    context = await run.context()
    kept = await context.create_object_from_value([1])
    lost = await context.create_object_from_value([2])
    assert kept.table.startswith("t11_2_")
    assert await run.lower(kept) is kept
    names = {kept.table, lost.table}
    await run.end()
    async with data.data_context() as other:
        found = await other.client.rows("SELECT name FROM system.tables WHERE database = currentDatabase()")
    assert names & set(found.columns[0]) == {kept.table}


class Asked:
    """Services that note what it is asked for."""

    def __init__(self) -> None:
        self.holds: list[list[str]] = []

    async def hold(self, claim: Claim, tables: Sequence[str]) -> str:
        self.holds.append(list(tables))
        return "asked"

    async def recall(self, claim: Claim, key: CacheKey) -> CacheAnswer:
        return CacheAnswer()

    async def slots(self) -> int:
        return 1


@pytest.mark.parametrize(("registered", "asked"), [(True, []), (False, [["t11_2_1"]])])
async def test_a_table_that_is_known_since_the_claim_is_not_asked_for(
    local: Any, monkeypatch: pytest.MonkeyPatch, registered: bool, asked: list[Any]
) -> None:
    services = Asked()
    monkeypatch.setattr(module, "current_services", lambda: services)
    text = '{"x": {"object_type": "object", "table": "t3_1_1"}}'
    run = RunData(replace(claim(), kwargs_json=text, registered=registered, installation="known"))
    made = await (await run.context()).create_object_from_value([1])
    assert services.holds == asked
    comment = f"SELECT comment FROM system.tables WHERE name = '{made.table}'"
    ((found,),) = (await (await run.context()).client.rows(comment)).columns
    assert ("asked" if asked else "known") in found
    await run.end()


async def test_a_run_that_opened_nothing_says_so_if_names_were_held_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "current_services", lambda: Asked())
    done = Done(11, 2)
    assert RunData(replace(claim(), registered=True)).sign(done).made == ()
    assert RunData(claim()).sign(done).made is None
