"""The walk over a value ends, however deep the value is and whatever refers to itself in it."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.errors import ValueNotPortable
from aaiclick.orchestration.rules.values.encoding import DEPTH_MAX, decode_value, encode_value

MB = 1_000_000


def refusal(value: object) -> str:
    with pytest.raises(ValueNotPortable) as caught:
        encode_value(value, bytes_max=MB)
    return str(caught.value)


def there_and_back(value: object) -> object:
    return decode_value(encode_value(value, bytes_max=MB))


def cyclic_list() -> object:
    value: list[object] = []
    value.append(value)
    return value


def cyclic_dict() -> object:
    value: dict[object, object] = {"a": 1}
    value["self"] = [value]
    return value


def cyclic_pairs() -> object:
    value: dict[object, object] = {1: 1}
    value[2] = (value,)
    return value


@pytest.mark.parametrize(
    ("make", "path"),
    [(cyclic_list, "value[0]: "), (cyclic_dict, "value.self[0]: "), (cyclic_pairs, "value[2][0]: ")],
)
def test_a_value_that_contains_itself_is_refused(make: Any, path: str) -> None:
    message = refusal(make())
    assert "contains itself" in message
    assert message.startswith(path)


def nested(depth: int, wrap: Any) -> object:
    value: object = 1
    for _ in range(depth):
        value = wrap(value)
    return value


WRAPS = [lambda v: [v], lambda v: (v,), lambda v: {"k": v}, lambda v: {1: v}]


@pytest.mark.parametrize("wrap", WRAPS)
def test_very_deep_values_are_refused_without_a_recursion_error(wrap: Any) -> None:
    message = refusal(nested(100_000, wrap))
    assert f"more than {DEPTH_MAX} levels" in message
    assert len(message) < 500


@pytest.mark.parametrize("wrap", WRAPS)
def test_the_allowed_depth_works(wrap: Any) -> None:
    value = nested(DEPTH_MAX, wrap)
    assert there_and_back(value) == value
    assert "levels" in refusal(wrap(value))


def test_the_allowed_depth_works_on_a_deep_stack() -> None:
    def further(calls: int) -> object:
        return there_and_back(nested(DEPTH_MAX, tuple_of)) if calls == 0 else further(calls - 1)

    def tuple_of(value: object) -> object:
        return (value,)

    assert further(400) == nested(DEPTH_MAX, tuple_of)


def test_empty_containers_at_the_limit_are_refused_cleanly() -> None:
    empties: list[object] = [[], {}, (), set()]
    for value in empties:
        for _ in range(DEPTH_MAX):
            value = [value]
        assert "levels" in refusal(value)
