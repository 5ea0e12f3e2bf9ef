"""How answers tell whether work is done, and where placeholders may be."""

from __future__ import annotations

from email.message import Message

import pytest

from aaiclick.errors import InputError
from aaiclick.executors.completion import Poll, filled, is_done, place_to_ask, value_at
from aaiclick.executors.http_calls import Response


def answer(text: str = "", status: int = 200, **headers: str) -> Response:
    said = Message()
    for name, value in headers.items():
        said[name] = value
    return Response(status, said, text.encode())


def test_without_a_field_the_status_tells() -> None:
    assert not is_done({}, answer(status=202))
    assert is_done({}, answer(status=200))


def test_a_field_tells_by_its_value() -> None:
    how = Poll(field="job.state", done=["ok", 1], failed=["bad"])
    assert is_done(how, answer('{"job": {"state": "ok"}}'))
    assert is_done(how, answer('{"job": {"state": 1}}'))
    for text in ('{"job": {"state": "busy"}}', '{"job": 3}', "[]", "no JSON", ""):
        assert not is_done(how, answer(text))
    with pytest.raises(ValueError, match=r"job\.state is 'bad'"):
        is_done(how, answer('{"job": {"state": "bad"}}'))
    assert value_at({"a": [1]}, "a.0") is None


def test_placeholders_become_fields_and_stay_where_they_are() -> None:
    assert filled("http://x/{id}?y={n}", answer('{"id": "../a b?", "n": 3}')) == "http://x/..%2Fa%20b%3F?y=3"
    for text in ("{}", "[]", '{"id": null}', '{"id": {}}', '{"id": true}', ""):
        with pytest.raises(InputError, match="id"):
            filled("http://x/{id}", answer(text))


def test_where_to_ask() -> None:
    assert place_to_ask({}, "http://x/a/b", answer(Location="../c")) == "http://x/c"
    with pytest.raises(InputError, match="Location"):
        place_to_ask({}, "http://x/", answer())
