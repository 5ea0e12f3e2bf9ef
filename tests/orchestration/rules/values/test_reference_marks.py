"""What a text refers to: found where it is marked, and nowhere else."""

from __future__ import annotations

import json

import pytest

from aaiclick.orchestration.rules.values.encoding import encode_kwargs, encode_value
from aaiclick.orchestration.rules.values.reference_marks import REMEMBERED_CHARS, marks_of, mentions_objects

MB = 10**6


def test_there_are_no_marks_in_plain_data() -> None:
    assert not marks_of("null")
    assert not marks_of("{}")
    assert not marks_of(encode_kwargs({"a": 1}, bytes_max=MB))
    assert not marks_of(encode_value({"marks": [[[], "task", 1]], "v": ("object",)}, bytes_max=MB))
    assert not marks_of(encode_kwargs({"object_type": {"marks": (1,)}}, bytes_max=MB))


@pytest.mark.parametrize("more", [0, REMEMBERED_CHARS])
def test_whoever_asks_again_gets_the_same_answer(more: int) -> None:
    text = json.dumps({"x": {"object_type": "view", "table": "t1_1_1", "where": "a" * more}})
    first = [(kind, dict(payload)) for kind, payload in marks_of(text) if isinstance(payload, dict)]
    assert first == [("view", {"table": "t1_1_1", "where": "a" * more})]
    assert list(marks_of(text)) == first


def test_what_cannot_be_read_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="Expecting"):
            marks_of('{"object"')


@pytest.mark.parametrize(("text", "may"), [(None, False), ("null", False), ('["object"]', True), ('"view"', True)])
def test_a_quick_look(text: str | None, may: bool) -> None:
    assert mentions_objects(text) is may
