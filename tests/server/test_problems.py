"""What went wrong, as RFC 9457 says it."""

from __future__ import annotations

import json

import pytest

from aaiclick import errors
from aaiclick.errors import AaiclickError
from aaiclick.server.problems import WRONG_MAX, problem, problem_of, status_of
from tests.server.conftest import Client, problem_in

TREE = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, AaiclickError)]

EXPECTED = {
    errors.InputError: 422,
    errors.NotFound: 404,
    errors.ObjectNotFound: 404,
    errors.JobEnded: 409,
    errors.InputsGone: 409,
    errors.NotAuthenticated: 401,
    errors.NotAllowed: 403,
    errors.ValueTooLarge: 413,
    errors.CircularDependencyError: 422,
    errors.SignatureMismatch: 422,
    errors.DataUnreachable: 503,
    errors.TransientStoreError: 503,
    errors.ConfigError: 500,
}


@pytest.mark.parametrize("kind", TREE)
def test_every_error_has_an_answer(kind: type[AaiclickError]) -> None:
    answer = problem_of(kind())
    body = json.loads(bytes(answer.body))
    assert answer.status_code == body["status"] == status_of(kind())
    assert answer.status_code == EXPECTED.get(kind, answer.status_code)
    assert answer.media_type == "application/problem+json"


def test_a_fault_of_ours_tells_nothing() -> None:
    answer = problem_of(errors.ConfigError(setting="AAICLICK_SQL_URL", value="x", rule="y", hint="z"))
    assert b"AAICLICK_SQL_URL" not in bytes(answer.body)


def test_a_problem_has_its_name_for_programs_and_for_people() -> None:
    body = json.loads(bytes(problem_of(errors.NotFound(what="job", field="id", value=5, hint="")).body))
    assert body == {
        "type": "urn:aaiclick:problem:NotFound",
        "title": "Not found",
        "status": 404,
        "code": "not_found",
        "detail": "No job with id 5. List what exists, as with GET /api/v1/jobs.",
        "facts": {"field": "id", "value": "5", "what": "job"},
    }


def test_what_is_masked_or_long_is_no_fact() -> None:
    error = errors.InputError(field="password", value="hunter2 " + "x" * 400, rule="it is too long", hint="")
    body = json.loads(bytes(problem_of(error).body))
    assert body["facts"] == {"field": "password", "rule": "it is too long"}
    told = json.dumps(json.loads(bytes(problem_of(errors.NotAuthenticated(cause="token=abc", hint="")).body)))
    assert "abc" not in told


@pytest.mark.parametrize("kind", [errors.InputError, errors.NotFound])
def test_the_way_out_is_the_errors_own_or_else_where_it_is_told(kind: type[AaiclickError]) -> None:
    told = [json.loads(bytes(problem_of(kind(hint=hint)).body))["detail"] for hint in ("", "Do this.")]
    assert "/api/v1/" in told[0]
    assert told[1].endswith("Do this.")


async def test_what_has_another_form_is_told_with_its_value_and_a_way_out(client: Client) -> None:
    said = problem_in(await client.get("/jobs", params={"limit": -1, "api_key": "hunter2"}), 422)["detail"]
    assert "limit: '-1': " in said
    assert ("api_key: ***" in said, "hunter2" in said) == (True, False)
    assert said.endswith("/api/v1/openapi.json lists what is accepted.")


def test_secrets_and_control_characters_do_not_pass() -> None:
    text = bytes(problem(422, "X", "postgresql://u:hush@h/x \x1b[31m").body).decode()
    assert "hush" not in text
    assert "\\u001b" not in text


def test_who_may_try_again_is_told_when() -> None:
    assert problem_of(errors.TransientStoreError()).headers["retry-after"]


async def test_a_thousand_wrong_fields_are_not_answered_with_a_thousand_lines(client: Client) -> None:
    answer = await client.post("/objects/x/query", json={"columns": [1] * 1000})
    told = problem_in(answer, 422)
    assert len(told["errors"]) == WRONG_MAX
    assert f"; and {1000 - WRONG_MAX} more. " in told["detail"]
