"""Trying again."""

from __future__ import annotations

import pytest

from aaiclick.orchestration.execution.trouble import TROUBLE_S_MAX, TROUBLE_S_MIN, Trouble, insist
from tests.support.clocks import HandClock


def test_it_backs_off_up_to_a_limit_and_begins_anew() -> None:
    trouble = Trouble()
    pauses = []
    for _ in range(9):
        trouble.met("cannot claim", OSError("no"))
        pauses.append(trouble.pause_s)
    assert pauses[0] == TROUBLE_S_MIN
    assert pauses == sorted(pauses)
    assert pauses[-1] == TROUBLE_S_MAX
    trouble.over()
    assert trouble.pause_s == 0


def test_the_same_trouble_is_said_once_and_its_end_once(caplog: pytest.LogCaptureFixture) -> None:
    trouble = Trouble()
    trouble.over()
    for _ in range(3):
        trouble.met("cannot claim", OSError("no"))
    trouble.met("cannot claim", OSError("something else"))
    trouble.over()
    trouble.over()
    assert [record.getMessage() for record in caplog.records] == [
        "cannot claim: OSError: no (trying again)",
        "cannot claim: OSError: something else (trying again)",
        "the database answers again",
    ]


async def test_insisting_ends_with_the_answer() -> None:
    clock, answers = HandClock(), [OSError("no"), OSError("no"), 7]

    async def call() -> object:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    assert await insist("cannot register", call, clock) == 7
    assert clock.slept == [TROUBLE_S_MIN, 2 * TROUBLE_S_MIN]
