"""The key of a run's result, and what is asked and kept under it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aaiclick.config import reset_settings
from aaiclick.data import create_object_from_value, data_context
from aaiclick.errors import IdempotencyConflict
from aaiclick.orchestration import Cache, task
from aaiclick.orchestration.execution.runs.current import Running, get_current_run, going_on
from aaiclick.orchestration.execution.runs.remembered import Asked, ask, kept, policy_of
from aaiclick.orchestration.execution.runs.run_data import RunData
from aaiclick.orchestration.models import CacheAnswer, CacheKey, Claim, Done, Failure
from aaiclick.orchestration.models.children import Children
from aaiclick.orchestration.rules.cache_policies import Remembering
from aaiclick.orchestration.rules.failed import Failed
from tests.orchestration import cached_flows as flows
from tests.support.bodies import claim_of


class Services:
    """Notes the keys, and gives one answer."""

    def __init__(self, answer: CacheAnswer | None = None) -> None:
        self.keys: list[CacheKey] = []
        self.answer = answer or CacheAnswer(remembers=True)

    async def hold(self, claim: Claim, tables: Sequence[str]) -> str:
        return "ours"

    async def recall(self, claim: Claim, key: CacheKey) -> CacheAnswer:
        self.keys.append(key)
        return self.answer

    async def callback(self, claim: Claim, digest: str) -> str | None:
        return None

    async def slots(self) -> int:
        return 1


async def asked(
    found: Any, kwargs: dict[str, Any], *, services: Services | None = None, opened: dict[str, Any] | None = None
) -> Asked | None:
    """What a run of this function with these arguments asks and is answered."""
    claim = claim_of(found.function)
    running, data = Running(claim), RunData(claim)
    running.services = services or Services()
    with going_on(running):
        policy = policy_of(claim, found)
        assert policy is not None
        try:
            return await ask(claim, found, policy, kwargs, opened or {}, data)
        finally:
            await data.end()


async def key_of(found: Any, kwargs: dict[str, Any], opened: dict[str, Any] | None = None) -> CacheKey:
    answer = await asked(found, kwargs, opened=opened)
    assert answer is not None
    return answer.key


def test_what_a_call_chose_counts_before_what_the_function_says() -> None:
    claim = claim_of(flows.double.function)
    assert policy_of(claim, flows.double) == Remembering(Cache())
    assert policy_of(claim, flows.uncached) is None
    assert policy_of(claim, flows.double.function) is None
    assert policy_of(replace(claim, cache_policy="{}"), flows.double) is None
    chosen = replace(claim, cache_policy='{"cache":{"ttl":5}}')
    assert policy_of(chosen, flows.uncached) == Remembering(Cache(ttl=5))


async def test_equal_arguments_have_equal_keys() -> None:
    @task(cache=True)
    def body(**given: Any) -> None: ...

    first = await key_of(body, {"a": {"x": (1,), "y": {3, 1, 2}}, "b": None})
    assert await key_of(body, {"b": None, "a": {"y": {2, 3, 1}, "x": (1,)}}) == first
    others: list[dict[str, Any]] = [
        {"a": 1},
        {"a": 1.0},
        {"a": True},
        {"a": "1"},
        {"b": 1},
        {"a": [1]},
        {"a": (1,)},
        {},
    ]
    keys = [(await key_of(body, each)).digest for each in others]
    assert len({*keys, first.digest}) == len(others) + 1


async def test_another_version_function_or_scope_is_another_key() -> None:
    def body(x: int) -> None: ...

    def other(x: int) -> None: ...

    caches = [Cache(), Cache(version=1), Cache(version=2), Cache(scope="job"), Cache(key="{x}"), Cache(key="k{x}")]
    keys = [await key_of(task(cache=each)(body), {"x": 1}) for each in caches]
    keys.append(await key_of(task(cache=Cache(version=1))(other), {"x": 1}))
    assert len({key.digest for key in keys}) == len(keys)
    assert len({key.inputs for key in keys}) == 1
    assert (await key_of(task(cache=Cache(ttl=5))(body), {"x": 1})).digest == keys[0].digest


async def test_an_idempotency_key_is_known_to_the_body_and_has_no_version() -> None:
    claim = claim_of(flows.charge.function)
    running = Running(claim)
    running.services = services = Services()
    with going_on(running):
        await ask(claim, flows.charge, flows.charge.remembering, {"order": 5, "amount": 1.0}, {}, RunData(claim))
        assert get_current_run().idempotency_key == "charge-5"
    (key,) = services.keys
    assert (key.once, key.label, key.ttl_s) == (True, "charge-5", None)


async def test_a_key_that_was_used_with_other_arguments_is_a_conflict() -> None:
    with pytest.raises(IdempotencyConflict, match="task 77 has completed with that key") as conflict:
        await asked(flows.charge, {"order": 5, "amount": 1.0}, services=Services(CacheAnswer(conflict=77)))
    assert conflict.value.key == "charge-5"


async def test_what_failed_upstream_is_never_an_argument_of_what_is_remembered() -> None:
    services = Services()
    assert await asked(flows.double, {"x": [Failed("E", "m", 1)]}, services=services) is None
    assert services.keys == []


async def test_without_a_source_only_a_version_helps() -> None:
    names: dict[str, Any] = {}
    exec("def f(x):\n    return x", names)  # noqa: S102 (a function without a file)
    assert await asked(task(cache=True)(names["f"]), {"x": 1}) is None
    assert await asked(task(cache=Cache(version=1))(names["f"]), {"x": 1}) is not None


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_LOCAL_ROOT", str(tmp_path))
    reset_settings()


async def test_an_object_counts_by_its_table_and_a_view_by_its_window_too(local: None) -> None:
    @task(cache=True)
    def body(of: Any) -> None: ...

    async with data_context():
        one, two = [await create_object_from_value({"n": [1, 2]}, name=name) for name in ("one", "two")]
        seen = [one, two, one.limit(1), one.limit(2), one.limit(1, 1), one.where("n > 1"), one["n"]]
        keys = [(await key_of(body, {"of": each}, {"of": each})).digest for each in seen]
        assert len(set(keys)) == len(seen)
        assert (await key_of(body, {"of": one.limit(1)}, {"of": one})).digest == keys[2]
        before = await asked(body, {"of": one}, opened={"of": one})
        assert before is not None
        await one.insert({"n": [3]})
        data = RunData(claim_of(body.function))
        report = Done(1, 1, "5")
        assert await kept(report, before, data) == report, "what it read is not what the key says"
        assert (await key_of(body, {"of": one}, {"of": one})).digest != keys[0]
        await data.end()


async def test_a_report_says_under_which_key_it_is_remembered() -> None:
    key = CacheKey("d", "a.b", "i")
    data = RunData(claim_of(flows.double.function))
    done = Done(1, 1, "5")
    assert await kept(done, Asked(key, CacheAnswer(remembers=True), {}), data) == replace(done, remember=key)
    fresh = await kept(done, Asked(key, CacheAnswer(remembers=True, refresh=True), {}), data)
    assert isinstance(fresh, Done)
    assert fresh.remember == replace(key, refresh=True)
    assert await kept(done, Asked(key, CacheAnswer(), {}), data) == done
    grown = replace(done, children=Children(1, [], [], [], []))
    for other in (grown, Failure(1, 1, "no")):
        assert await kept(other, Asked(key, CacheAnswer(remembers=True), {}), data) == other
