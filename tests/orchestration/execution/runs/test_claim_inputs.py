"""A claim takes along only what it needs."""

from __future__ import annotations

from aaiclick.orchestration.execution.runs.claim_inputs import narrowed
from aaiclick.orchestration.rules.values.encoding import encode_value
from tests.support import bodies


def text_of(value: object) -> str:
    """The stored form of a value; a tuple ("task", 5) stands for what it names."""

    class Stands:
        def __init__(self, *what: object) -> None:
            self.what = what

    def planted(part: object) -> object:
        if isinstance(part, list):
            return [planted(one) for one in part]
        return Stands(*part) if isinstance(part, tuple) else part

    def mark(part: object) -> tuple[str, object] | None:
        return part.what if isinstance(part, Stands) else None  # type: ignore[return-value]

    return encode_value(planted(value), bytes_max=10**6, mark=mark)


def test_a_claim_takes_along_what_its_arguments_need_and_what_that_needs() -> None:
    claim = bodies.claim_of(bodies.echo)
    claim.kwargs_json = '{"value": ' + text_of([("task", 1), ("group", 50), ("task", 99)]) + "}"
    claim.inputs = {
        1: text_of([("task", 2)]),
        2: text_of([("group", 51)]),
        3: None,
        4: text_of("four"),
        5: text_of([("task", 1)]),
        6: text_of("six"),
    }
    claim.members = {50: [3], 51: [4, 5], 52: [6]}
    narrow = narrowed(claim)
    assert set(narrow.inputs) == {1, 2, 3, 4, 5}
    assert narrow.members == {50: [3], 51: [4, 5]}
    assert len(claim.inputs) == 6


def test_a_claim_that_needs_nothing_takes_nothing() -> None:
    claim = bodies.claim_of(bodies.echo, value={"object_type": "task", "marks": [1]})
    assert narrowed(claim) is claim
    claim.inputs = {1: "null"}
    assert narrowed(claim).inputs == {}
    claim.kwargs_json = 'not json, but "marks"'
    assert narrowed(claim) is claim
