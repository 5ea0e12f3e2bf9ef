"""What stands for an input that failed."""

from __future__ import annotations

import json

from aaiclick.orchestration.rules.failed import Failed, failed_in, failed_text, holds_failed, read_failed
from aaiclick.orchestration.rules.values.encoding import decode_value, encode_value


def made(status: str, error: str | None) -> Failed | None:
    text = failed_text(7, status, error)
    return None if text is None else read_failed(json.loads(text))


def test_type_and_message_are_those_of_the_error() -> None:
    assert made("failed", "ValueError: no: really") == Failed("ValueError", "no: really", 7)
    assert made("failed", "KeyboardInterrupt") == Failed("KeyboardInterrupt", "", 7)
    assert str(Failed("ValueError", "no", 7)) == "ValueError: no"
    assert str(Failed("Odd", "", 7)) == "Odd"


def test_what_never_ran_or_was_cancelled_failed_too() -> None:
    assert made("upstream_failed", "UpstreamFailed: The task never ran: x") == Failed(
        "UpstreamFailed", "The task never ran: x", 7
    )
    assert made("cancelled", None) == Failed("Cancelled", "the task was cancelled", 7)
    assert made("failed", "what is this: no type") == Failed("Failed", "what is this: no type", 7)
    assert made("failed", None) == Failed("Failed", "", 7)


def test_what_is_complete_or_goes_on_has_not_failed() -> None:
    assert [made(status, None) for status in ("completed", "skipped", "pending", "running")] == [None] * 4


def test_a_failure_is_found_however_deep_it_is_and_what_contains_itself_is_looked_at_once() -> None:
    gone = Failed("ValueError", "no", 7)
    endless: list[object] = []
    endless.append(endless)
    assert all(map(holds_failed, (gone, [1, gone], (gone,), {"a": [{"b": gone}]}, [endless, gone])))
    assert not any(map(holds_failed, (None, 1, "x", [], {"a": Failed}, endless)))


def test_failures_are_told_from_results_among_the_texts_of_a_claim() -> None:
    text = failed_text(7, "failed", "ValueError: no")
    assert failed_in([None, text, '{"object_type":"pyobj","value":{"object_type":"failed"}}']) == [
        Failed("ValueError", "no", 7)
    ]


def test_a_failure_travels_as_a_value() -> None:
    gone = Failed("ValueError", "no", 7)
    assert decode_value(encode_value({"a": [gone]}, bytes_max=1000)) == {"a": [gone]}
