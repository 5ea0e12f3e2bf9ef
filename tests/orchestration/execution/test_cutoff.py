"""By when a worker that is not answered must have stopped its bodies."""

from __future__ import annotations

import pytest

from aaiclick.orchestration.execution.cutoff import Cutoff
from tests.support.ids import HandClock


@pytest.mark.parametrize(
    ("session_s", "grace_s", "ask_at", "kill_at"),
    [(30.0, 3.0, 21.5, 24.5), (30.0, 60.0, 14.5, 24.5), (6.0, 3.0, 2.9, 4.9), (30.0, 0.0, 24.5, 24.5)],
)
def test_bodies_are_asked_so_early_that_their_grace_fits(
    session_s: float, grace_s: float, ask_at: float, kill_at: float
) -> None:
    """Killed a sixtieth before five sixths of the session, and asked a third of it before that at most."""
    cutoff = Cutoff(session_s, grace_s, HandClock())
    cutoff.renewed(1000.0)
    assert (cutoff.ask_at - 1000, cutoff.kill_at - 1000) == pytest.approx((ask_at, kill_at))
    assert cutoff.kill_at <= 1000 + session_s * 5 / 6


def test_it_is_reckoned_from_what_was_sent_and_never_goes_back() -> None:
    clock = HandClock()
    told: list[tuple[float, float]] = []
    cutoff = Cutoff(30.0, 3.0, clock)
    cutoff.tell = lambda ask_at, kill_at: told.append((ask_at, kill_at))
    assert not cutoff.is_asking()
    sent = clock.monotonic()
    cutoff.renewed(sent)
    cutoff.renewed(sent - 5)  # an answer that was overtaken
    assert told == [(cutoff.ask_at, cutoff.kill_at)] == [pytest.approx((sent + 21.5, sent + 24.5))]


def test_whoever_was_asked_is_remembered_after_the_state_answers_again() -> None:
    clock = HandClock()
    cutoff = Cutoff(30.0, 3.0, clock)
    cutoff.renewed(clock.monotonic())
    clock.pass_by(20)
    assert (cutoff.is_asking(), cutoff.lapses) == (False, 0)
    clock.pass_by(2)
    assert cutoff.is_asking()
    assert cutoff.silent_s() == pytest.approx(22)
    cutoff.renewed(clock.monotonic())
    assert (cutoff.is_asking(), cutoff.lapses) == (False, 1)


def test_without_an_end_nobody_is_asked() -> None:
    """As for the job of a `job_test`, which nobody else may begin."""
    clock = HandClock()
    cutoff = Cutoff(float("inf"), 3.0, clock)
    cutoff.renewed(clock.monotonic())
    clock.pass_by(1e9)
    assert not cutoff.is_asking()
