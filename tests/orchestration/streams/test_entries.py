"""Entries of strangers: what is accepted, and what is refused in one line."""

from __future__ import annotations

import pytest

from aaiclick.errors import InputError
from aaiclick.orchestration.streams.entries import Entry, read_entry, readable_id

ORIGIN = "stream:orchestrator:inference_jobs/1-0"

REFUSED: dict[str, tuple[dict[bytes, bytes], str]] = {
    "no fields": ({}, "it has no field type"),
    "no type": ({b"job_id": b"1", b"payload": b"{}"}, "it has no field type"),
    "an unknown field": ({b"type": b"t", b"prio": b"1"}, "there is no such field"),
    "an unknown field that is no text": ({b"type": b"t", b"\xff": b"1"}, "there is no such field"),
    "a type that is not UTF-8": ({b"type": b"\xff"}, "byte 0 is not UTF-8"),
    "a job_id that is not UTF-8": ({b"type": b"t", b"job_id": b"a\xff"}, "byte 1 is not UTF-8"),
    "a payload that is not UTF-8": ({b"type": b"t", b"payload": b'{"a": "\xe9"}'}, "byte 7 is not UTF-8"),
    "an empty type": ({b"type": b""}, "it has 0 characters"),
    "an empty job_id": ({b"type": b"t", b"job_id": b""}, "it has 0 characters"),
    "a long job_id": ({b"type": b"t", b"job_id": b"x" * 201}, "it has 201 characters"),
    "a job_id with a line": ({b"type": b"t", b"job_id": b"a\nb"}, "U+000A"),
    "no JSON": ({b"type": b"t", b"payload": b"{'a': 1}"}, "it is not JSON"),
    "an empty payload": ({b"type": b"t", b"payload": b""}, "it is not JSON"),
    "NaN": ({b"type": b"t", b"payload": b'{"a": NaN}'}, "NaN is no number of JSON"),
    "a member twice": ({b"type": b"t", b"payload": b'{"a": 1, "a": 2}'}, "a member occurs twice"),
    "nested": ({b"type": b"t", b"payload": b"[" * 9_000}, "it is nested too deeply"),
    "huge": ({b"type": b"t", b"payload": b'"' + b"x" * 20_000 + b'"'}, "it must have at most 10000 bytes"),
}


def test_the_entry_of_the_specification() -> None:
    found = read_entry({b"job_id": b"123", b"type": b"inference", b"payload": b'{"a": [1]}'}, ORIGIN, bytes_max=1000)
    assert found == Entry("123", "inference", {"a": [1]})


def test_without_an_id_an_entry_is_called_by_its_place() -> None:
    assert read_entry({b"type": b"inference"}, ORIGIN, bytes_max=1000) == Entry(ORIGIN, "inference", {})


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    fields, why = REFUSED[case]
    with pytest.raises(InputError) as refusal:
        read_entry(fields, ORIGIN, bytes_max=10_000)
    assert why in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 500


def test_a_refusal_names_the_job_as_far_as_it_can_be_read() -> None:
    assert readable_id({b"job_id": b"a\xff"}, ORIGIN) == "a\ufffd"
    assert readable_id({}, ORIGIN) == ORIGIN
    assert len(readable_id({b"job_id": b"x" * 100_000}, ORIGIN)) < 300
