"""What a server refuses, as the same errors."""

from __future__ import annotations

import json
import pickle

import pytest

from aaiclick import errors
from aaiclick.client.refusals import data_of, error_of
from aaiclick.errors import AaiclickError
from aaiclick.server.problems import problem_of, status_of

TREE = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, AaiclickError)]

FACTS = {"what": "job 7", "field": "id", "value": "7", "cause": "of a test", "verb": "read", "hint": "Do this."}
FACTS |= {"url": "a", "path": "p"}


@pytest.mark.parametrize("kind", TREE)
def test_each_error_arrives_as_it_was_sent(kind: type[AaiclickError]) -> None:
    sent = kind() if kind is errors.TaskSkipped else kind(**FACTS)  # its only argument is its reason
    answer = problem_of(sent)
    found = error_of(answer.status_code, bytes(answer.body), "http://server")
    if status_of(sent) == 500 or kind is errors.ServerBusy or kind is errors.ServerFault:
        assert type(found) is errors.ServerFault or isinstance(found, errors.ServerBusy)
        return
    assert type(found) is kind
    assert str(found) == json.loads(bytes(answer.body))["detail"]
    assert (found.exit_code, found.status, found.url) == (sent.exit_code, answer.status_code, "http://server")
    again = pickle.loads(pickle.dumps(found))  # noqa: S301 (its own)
    assert (str(again), again.facts) == (str(found), found.facts)


def test_its_parts_are_there_too() -> None:
    body = bytes(problem_of(errors.NotFound(what="job", field="id", value=7, hint="Look.")).body)
    found = error_of(404, body, "http://server")
    assert (found.what, found.field, found.value, found.hint) == ("job", "id", "7", "Look.")


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, errors.NotAuthenticated), (404, errors.NotFound), (409, errors.Conflict), (429, errors.ServerBusy)],
)
def test_an_unknown_type_is_told_by_its_status(status: int, kind: type[AaiclickError]) -> None:
    body = json.dumps({"type": "urn:aaiclick:problem:FromTheFuture", "detail": "No."}).encode()
    found = error_of(status, body, "http://server")
    assert type(found) is kind
    assert "No." in str(found)


@pytest.mark.parametrize("body", [b"", b"<html>Bad gateway</html>", b"[1]", b"\xff", b'{"a": 1}'])
def test_what_is_no_problem_document(body: bytes) -> None:
    found = error_of(502, body, "http://server")
    assert type(found) is errors.ServerFault
    assert "502" in str(found)


def test_a_server_names_no_attributes_of_its_own() -> None:
    told = {
        "type": "urn:aaiclick:problem:NotFound",
        "detail": "x",
        "facts": {"args": "y", "exit_code": "0", "what": "z"},
    }
    found = error_of(404, json.dumps(told).encode(), "http://server")
    assert (found.what, found.exit_code, found.args) == ("z", 3, ("x",))


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"null", b"\xff", b"[" * 100_000])
def test_what_other_servers_answer_is_no_data(body: bytes) -> None:
    with pytest.raises(errors.ServerFault, match=r"answered 200 with what is no JSON object.* aaiclick server"):
        data_of(200, body, "u")
    assert "answered 404 with what is no problem document" in str(error_of(404, body, "u"))


def test_data_is_returned_as_it_is() -> None:
    assert data_of(200, b'{"a": 1}', "u") == {"a": 1}
