"""What goes wrong again and again."""

from __future__ import annotations

import logging

import pytest
from sqlalchemy.exc import OperationalError

from aaiclick.backoff import (
    AGAIN_S,
    CALM_S,
    SAID_MAX,
    THINGS_MAX,
    TROUBLE_S_MAX,
    TROUBLE_S_MIN,
    Backoff,
    Backoffs,
    insist,
    one_line,
    said,
)
from aaiclick.errors import BackendUnreachable
from tests.support.clocks import HandClock


def meet(backoff: Backoff, clock: HandClock, seconds: float) -> None:
    """It goes wrong once a second."""
    for _ in range(int(seconds)):
        backoff.met("claiming", OSError("no"))
        clock.now += 1


def test_it_backs_off_up_to_a_limit_and_begins_anew() -> None:
    backoff = Backoff()
    pauses = []
    for _ in range(9):
        backoff.met("claiming", OSError("no"))
        pauses.append(backoff.pause_s)
    assert backoff.going_on
    assert pauses[0] == TROUBLE_S_MIN
    assert pauses == sorted(pauses)
    assert pauses[-1] == TROUBLE_S_MAX
    backoff.over()
    assert backoff.pause_s == 0
    assert not backoff.going_on


def test_it_is_told_at_once_then_once_a_minute_and_at_its_end(caplog: pytest.LogCaptureFixture) -> None:
    clock = HandClock()
    backoff = Backoff(clock)
    backoff.over()
    meet(backoff, clock, 2 * AGAIN_S + 1)
    backoff.over()
    backoff.over()
    assert caplog.messages == [
        "claiming fails: OSError: no; trying again",
        "claiming fails since 00:16:40 UTC (61 times): OSError: no; trying again",
        "claiming fails since 00:16:40 UTC (121 times): OSError: no; trying again",
        "claiming works again, after 121 s and 121 failed tries",
    ]


def test_another_cause_is_told_at_once_and_each_but_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    backoff = Backoff(HandClock())
    for _ in range(5):
        backoff.met("claiming", OSError("no"))
        backoff.met("claiming", TimeoutError())
    assert caplog.messages == [
        "claiming fails: OSError: no; trying again",
        "claiming fails since 00:16:40 UTC (2 times): TimeoutError; trying again",
    ]


def test_what_comes_and_goes_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    clock = HandClock()
    backoff = Backoff(clock)
    for _ in range(int(AGAIN_S)):
        meet(backoff, clock, 1)
        backoff.over()
    assert len(caplog.messages) == 2
    meet(backoff, clock, 1)
    assert caplog.messages[2:] == ["claiming fails since 00:16:40 UTC (61 times): OSError: no; trying again"]


def test_what_comes_back_after_a_while_is_new(caplog: pytest.LogCaptureFixture) -> None:
    clock = HandClock()
    backoff = Backoff(clock)
    for _ in range(2):
        meet(backoff, clock, 1)
        backoff.over()
        clock.now += CALM_S
    assert [line.partition(":")[0] for line in caplog.messages[::2]] == ["claiming fails", "claiming fails"]


def test_what_is_done_about_it_is_told(caplog: pytest.LogCaptureFixture) -> None:
    Backoff().met("promoting", OSError("no"), "whoever leads tries next")
    assert caplog.messages == ["promoting fails: OSError: no; whoever leads tries next"]


def test_the_same_error_of_another_cause_is_told_at_once(caplog: pytest.LogCaptureFixture) -> None:
    backoff = Backoff(HandClock())
    for number in (28, 30, 28, 30):
        backoff.met("writing", OSError(number, f"no {number}"))
    assert ["no 28" in line for line in caplog.messages] == [True, False]


def test_how_a_block_went_is_told_and_its_error_ends_there(caplog: pytest.LogCaptureFixture) -> None:
    clock = HandClock()
    backoff = Backoff(clock)
    with backoff.told("counting", "it is left"):
        raise ValueError("what is this?")
    assert backoff.going_on
    with backoff.told("counting"):
        clock.now += 1
    assert not backoff.going_on
    assert caplog.messages == [
        "counting fails: ValueError: what is this?; it is left",
        "counting works again, after 1 s and 1 failed tries",
    ]
    with pytest.raises(KeyboardInterrupt), backoff.told("counting"):
        raise KeyboardInterrupt


def test_each_of_many_things_is_told_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    backoffs = Backoffs(HandClock())
    for _ in range(3):
        for thing in ("a", "b"):
            backoffs.of(thing).met(f"dropping {thing}", OSError("no"))
    backoffs.over("a")
    backoffs.over("c")
    assert caplog.messages == [
        "dropping a fails: OSError: no; trying again",
        "dropping b fails: OSError: no; trying again",
        "dropping a works again, after 0 s and 3 failed tries",
    ]


def test_of_very_many_things_the_rest_is_told_together(caplog: pytest.LogCaptureFixture) -> None:
    backoffs = Backoffs(HandClock())
    for _ in range(2):
        for thing in range(2 * THINGS_MAX):
            backoffs.of(thing).met(f"dropping {thing}", OSError("no"))
    assert len(caplog.messages) == THINGS_MAX + 1
    for thing in range(THINGS_MAX):
        backoffs.over(thing)
    backoffs.of("later").met("dropping what comes later", OSError("no"))
    assert caplog.messages[-1] == "dropping what comes later fails: OSError: no; trying again"


def test_a_handler_of_logging_may_meet_the_same_backoff(caplog: pytest.LogCaptureFixture) -> None:
    backoff = Backoff(HandClock())

    class Failing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            backoff.met("writing", OSError("no"))

    handler, log = Failing(), logging.getLogger("aaiclick")
    log.addHandler(handler)
    try:
        backoff.met("writing", OSError("no"))
    finally:
        log.removeHandler(handler)
    assert len(caplog.messages) == 1


def test_an_error_is_told_in_one_line_without_its_statement() -> None:
    driver = ConnectionError(2013, "Lost\nthe server.")
    lost = OperationalError("SELECT secret\nFROM t", {}, driver)
    assert one_line(lost) == "Lost the server"
    assert said(lost) == "ConnectionError: Lost the server"
    assert one_line(None) == "None"
    assert said(TimeoutError()) == "TimeoutError"
    assert said(BackendUnreachable(url="here", cause="no")).startswith("Cannot reach the database at here: no.")
    assert len(said(ValueError("x" * 10_000))) == SAID_MAX + 1


async def test_insisting_ends_with_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    clock, answers = HandClock(), [OSError("no"), OSError("no"), 7]

    async def call() -> object:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    assert await insist("registering", call, clock) == 7
    assert clock.slept == [TROUBLE_S_MIN, 2 * TROUBLE_S_MIN]
    assert [line.partition(":")[0] for line in caplog.messages[:1]] == ["registering fails"]
    assert "registering works again" in caplog.messages[-1]


async def test_who_insists_gives_up_on_errors_that_stay() -> None:
    async def refused() -> int:
        raise LookupError("no")

    with pytest.raises(LookupError):
        await insist("asking", refused, HandClock(), but=(LookupError,))
