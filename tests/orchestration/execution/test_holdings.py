"""What a worker holds, as its heart sees it."""

from __future__ import annotations

from aaiclick.orchestration.execution.holdings import LONG_S, Holdings
from aaiclick.orchestration.models import Claim, Done, Failure, Held


def claim(task_id: int) -> Claim:
    return Claim(task_id, 1, 7, 8, None, "t", "m.t", "{}", 0, None)


def test_a_run_is_listed_from_its_claim_until_its_report_is_acknowledged() -> None:
    held = Holdings()
    held.answered(1, [claim(5)], now=0)
    assert held.picture(0).held == [Held(5, 1)]
    held.ended((5, 1), now=2)
    assert held.picture(0).held == [Held(5, 1)]
    assert held.owing()
    held.acknowledged([Done(5, 1)])
    assert held.picture(0).held == []
    assert not held.owing()


def test_the_list_and_the_last_known_call_belong_together() -> None:
    held = Holdings()
    held.answered(1, [claim(5)], now=0)
    held.answered(2, [], now=0)
    picture = held.picture(0)
    assert (picture.known_call, [run.task_id for run in picture.held]) == (2, [5])


def test_only_what_takes_long_is_said_to_have_started_and_only_once() -> None:
    held = Holdings()
    held.answered(1, [claim(5), claim(6)], now=0)
    held.begun((5, 1), "5.log")
    assert not any(run.started for run in held.picture(LONG_S / 2).held)
    picture = held.picture(LONG_S)
    assert picture.held == [Held(5, 1, started=True, log_path="5.log"), Held(6, 1)]
    held.told(picture, now=LONG_S)
    assert held.heard_at == LONG_S
    assert not any(run.started for run in held.picture(LONG_S).held)


def test_counts_are_told_once_even_if_more_came_meanwhile() -> None:
    held = Holdings()
    held.answered(1, [claim(number) for number in range(4)], now=0)
    held.acknowledged([Done(0, 1), Failure(1, 1, "no")])
    assert held.take_counts() == (1, 1)
    held.acknowledged([Done(2, 1), Done(99, 1)])
    assert held.take_counts() == (1, 0)
    assert held.take_counts() == (0, 0)


def test_counts_that_could_not_be_told_are_told_with_the_next() -> None:
    held = Holdings()
    held.count(2, 1)
    held.count(*held.take_counts())
    assert held.take_counts() == (2, 1)


def test_what_is_dropped_is_nobodys_business() -> None:
    held = Holdings()
    held.answered(1, [claim(5), claim(6)], now=0)
    held.ended((6, 1), now=0)
    assert [run.claim.task_id for run in held.unfinished()] == [5]
    held.drop([(5, 1), (6, 1), (7, 1)])
    assert len(held) == 0


def test_it_knows_for_how_long_a_report_is_owed() -> None:
    held = Holdings()
    held.answered(1, [claim(5), claim(6), claim(7)], now=0)
    assert held.unreported_s(100) == 0
    held.ended((5, 1), now=10)
    held.ended((6, 1), now=20)
    assert held.unreported_s(100) == held.picture(100).unreported_s == 90
    held.acknowledged([Done(5, 1)])
    assert held.unreported_s(100) == 80
