"""What stands for a text that is too large says what the text refers to."""

from __future__ import annotations

import json

import pytest

from aaiclick.errors import ValueTooLarge
from aaiclick.orchestration.rules.secrets import Secret, mentions_secrets
from aaiclick.orchestration.rules.values.encoding import decode_value, encode_kwargs, encode_value
from aaiclick.orchestration.rules.values.large_values import (
    arguments_with,
    is_too_large,
    large_arguments,
    reference_to,
    refuse_large,
    value_with,
)
from aaiclick.orchestration.rules.values.reference_marks import marks_of, mentions_objects
from aaiclick.orchestration.rules.values.run_tables import tables_named

MB = 1_000_000


def mark(value: object) -> tuple[str, object] | None:
    return ("task", 7) if value is mark else None


def test_what_it_refers_to_is_seen_without_opening_it() -> None:
    text = encode_value([mark, "x" * 100, Secret("env:NAME")], bytes_max=MB, mark=mark)
    stored = value_with(text, "t5_1_1")
    assert len(stored) < 200
    assert mentions_objects(stored)
    assert mentions_secrets(stored)
    assert tables_named(stored) == {"t5_1_1"}
    assert [kind for kind, _ in marks_of(stored)] == ["blob", "task"]
    found = reference_to(text, "t5_1_1")
    assert (found["table"], found["size"]) == ("t5_1_1", len(text))
    assert not mentions_secrets(value_with(encode_value("x", bytes_max=MB), "t5_1_1"))


def test_a_resolver_is_asked_for_the_text() -> None:
    stored = value_with(encode_value("ä" * 10, bytes_max=MB), "t5_1_1")
    asked = decode_value(stored, lambda kind, payload: (kind, payload))
    assert asked == ("blob", {"table": "t5_1_1", "size": len(encode_value("ä" * 10, bytes_max=MB).encode())})


def test_the_largest_arguments_go_until_the_rest_is_small_enough() -> None:
    kwargs = encode_kwargs({"a": "x" * 500, "b": 1, "c": "y" * 900, "d": "z" * 300}, bytes_max=MB)
    assert list(large_arguments(kwargs, 5_000)) == []
    assert list(large_arguments(kwargs, 1_500)) == ["c"]
    assert list(large_arguments(kwargs, 600)) == ["c", "a"]
    stored = json.loads(arguments_with(kwargs, {"c": "t1_0_1"}))
    assert list(stored) == ["a", "b", "c", "d"]
    assert stored["c"]["object_type"] == "blob"
    assert stored["a"] == json.loads(kwargs)["a"]


def test_bytes_count_and_tasks_do_not() -> None:
    text = encode_value("ä" * 100, bytes_max=MB)
    assert is_too_large(text, len(text) + 99)
    assert not is_too_large(text, len(text) + 100)
    many = encode_value([mark] * 100, bytes_max=MB, mark=mark)
    assert len(many) > 1_000
    assert not is_too_large(many, 1_000)


def test_where_no_blob_is_made_it_is_refused() -> None:
    refuse_large("x" * 100, "kwargs", 100)
    with pytest.raises(ValueTooLarge, match=r"kwargs takes 101 bytes"):
        refuse_large("x" * 101, "kwargs", 100)
