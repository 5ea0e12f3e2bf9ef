"""What went wrong, as an agent is told it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from aaiclick import errors
from aaiclick.server.mcp.arguments import FindJobs
from aaiclick.server.mcp.failures import failure_of, wrong_arguments
from aaiclick.server.problems import STATUS


@pytest.mark.parametrize("kind", STATUS)
def test_every_error_has_a_code_and_says_what_to_do(kind: type[errors.AaiclickError]) -> None:
    told = failure_of(kind())
    assert told.code == ("Fault" if STATUS[kind] == 500 else kind.__name__)
    assert told.what
    assert told.to_do


def test_what_and_what_to_do_are_told_apart() -> None:
    told = failure_of(errors.InputError(field="limit", value="0", rule="too few", hint="Ask for one."))
    assert told.what == "limit: 0 is not accepted: too few."
    assert told.to_do == "Ask for one."


def test_secrets_are_masked_and_long_texts_cut() -> None:
    told = failure_of(errors.InputError(field="x", value="password=hush \x1b[1m", rule="x" * 100_000, hint=""))
    assert "hush" not in told.what
    assert "\x1b" not in told.what
    assert len(told.what) < 3_000


def test_very_many_wrong_arguments() -> None:
    with pytest.raises(ValidationError) as refused:
        FindJobs.model_validate({f"x{number}": "y" for number in range(50)})
    told = wrong_arguments(refused.value)
    assert len(told.errors or ()) == 20
    assert len(told.model_dump_json()) < 10_000
