"""Affinity: which node the needs of a task name after an attempt, and once its inputs are there."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.orchestration.rules.affinity import after_attempt, failed_on, near_inputs, wished_node

SAME, OTHER = {"retry_node": "same"}, {"retry_node": "other"}
NEAR = {"near": "inputs", "pool": "p"}


@pytest.mark.parametrize(
    ("needs", "node", "failed", "named"),
    [
        (SAME, "a", True, "a"),
        (SAME, "a", False, "a"),
        (SAME, "a", None, "a"),
        (SAME, None, True, None),
        ({**SAME, "previous": "b"}, "a", True, "a"),
        (OTHER, "a", True, "a"),
        ({**OTHER, "previous": "b"}, "a", True, "a"),
        ({**OTHER, "previous": "b"}, "a", False, None),
        ({**OTHER, "previous": "b"}, "a", None, "b"),
        ({**OTHER, "previous": "b"}, None, True, None),
        ({"pool": "p"}, "a", True, None),
    ],
)
def test_the_node_of_an_attempt_is_named_if_the_next_one_goes_by_it(
    needs: dict[str, Any], node: str | None, failed: bool | None, named: str | None
) -> None:
    rest = {name: each for name, each in needs.items() if name != "previous"}
    assert after_attempt(needs, node, failed=failed) == rest | ({} if named is None else {"previous": named})


def test_the_node_of_the_inputs_is_named_until_an_attempt_is() -> None:
    assert near_inputs(NEAR, "a") == {**NEAR, "inputs_on": "a"}
    assert near_inputs({**NEAR, "inputs_on": "a"}, "b") == {**NEAR, "inputs_on": "b"}
    assert near_inputs({**NEAR, "inputs_on": "a"}, None) == NEAR
    assert near_inputs({"pool": "p"}, "a") == {"pool": "p"}
    both = near_inputs({**NEAR, **SAME}, "a")
    again = after_attempt(both, "b", failed=True)
    assert again == {**NEAR, **SAME, "previous": "b"} == near_inputs(again, "a")


def test_what_a_named_node_means() -> None:
    assert wished_node({**SAME, "previous": "a"}, "x") == wished_node({**NEAR, "inputs_on": "a"}, "x") == "a"
    assert wished_node(SAME, "x") == wished_node({**OTHER, "previous": "a"}, "x") == "x"
    assert failed_on({**OTHER, "previous": "a"}, "a")
    assert not failed_on({**OTHER, "previous": "a"}, "b")
    assert not failed_on({**SAME, "previous": "a"}, "a")
