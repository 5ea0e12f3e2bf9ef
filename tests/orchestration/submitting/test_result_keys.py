"""Keys of functions are checked where they are declared, and named by their entrypoints where they travel."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.errors import EntrypointError, InputError
from aaiclick.orchestration import Cache, Task, create_task, task
from aaiclick.orchestration.rules.cache_policies import KeyFunction, Remembering
from aaiclick.orchestration.submitting.result_keys import check_keys, portable
from tests.orchestration import cached_flows as flows

HERE = "tests.orchestration.cached_flows"


def body(customer: str, day: str) -> None: ...


def loose(**facts: Any) -> None: ...


@pytest.mark.parametrize("options", [{"cache": Cache(key="{week}")}, {"idempotency_key": "{week}"}])
def test_a_template_that_no_call_could_fill_is_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="customer, day"):
        task(**options)(body)
    with pytest.raises(InputError, match="customer, day"):
        create_task(body, {}, **options)
    task(**options)(loose)


def test_functions_are_named_by_their_entrypoints() -> None:
    found = portable(Remembering(Cache(key=flows.parity)))
    assert found.cache == Cache(key=KeyFunction(f"{HERE}.parity"))
    with pytest.raises(EntrypointError, match="lambda"):
        portable(Remembering(idempotency_key=lambda x: "x"))
    check_keys(body, Remembering(idempotency_key=lambda x: "x"))


def stored(made: Any) -> str | None:
    assert isinstance(made, Task)
    return made.cache_policy


def test_only_what_a_call_chose_is_stored() -> None:
    assert stored(flows.double(1)) is None
    assert stored(flows.double.options(priority=5)(1)) is None
    assert stored(flows.double.options(cache=60)(1)) == '{"cache":{"ttl":60}}'
    assert stored(flows.double.options(cache=60).options(priority=5)(1)) == '{"cache":{"ttl":60}}'
    assert stored(flows.double.options(cache=None)(1)) == "{}"
    assert stored(flows.charge.options(idempotency_key="x")(1, 2.0)) == '{"idempotency_key":"x"}'
    assert stored(Task(f"{HERE}.double", {"x": 1}, cache=True)) == '{"cache":{}}'
    with pytest.raises(InputError, match="one of them"):
        flows.charge.options(cache=True)
