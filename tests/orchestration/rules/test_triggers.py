"""The trigger rules: what each waits for, what it bears, and how it ends when it cannot be met."""

from __future__ import annotations

import itertools

import pytest

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.triggers import Fate, News, Standing, When, check_when, judge, learn

MET, SKIPPED, FAILED, CANCELLED = Standing.MET, Standing.SKIPPED, Standing.FAILED, Standing.CANCELLED
R, D, S, W = Fate.RUNS, Fate.DOOMED, Fate.SKIPPED, Fate.WAITS


def news_of(*standings: Standing) -> News:
    news = News()
    for standing in standings:
        news.add(standing)
    return news


@pytest.mark.parametrize(
    ("when", "fates"),
    [  # of one input: completed, skipped, failed, cancelled, and none at all
        (When.ALL_COMPLETED, (R, R, D, D, R)),
        (When.NONE_FAILED, (R, R, D, R, R)),
        (When.ALL_DONE, (R, R, R, D, R)),
        (When.ALWAYS, (R, R, R, R, R)),
        (When.ONE_COMPLETED, (R, S, D, D, S)),
        (When.ONE_FAILED, (S, S, R, D, S)),
    ],
)
def test_what_comes_of_a_node_with_one_input_or_none(when: When, fates: tuple[Fate, ...]) -> None:
    ends = [(MET,), (SKIPPED,), (FAILED,), (CANCELLED,), ()]
    assert tuple(judge(when, len(end), news_of(*end)).fate for end in ends) == fates


@pytest.mark.parametrize("when", list(When))
def test_in_whatever_order_it_is_told_the_end_is_the_same_unless_one_was_enough(when: When) -> None:
    for ends in itertools.product((MET, SKIPPED, FAILED), repeat=3):
        at_once = judge(when, 3, news_of(*ends))
        for order in itertools.permutations(ends):
            verdict = judge(when, 3, News())
            fates = []
            for standing in order:
                verdict = learn(when, verdict.unmet, verdict.awaited, verdict.amiss, news_of(standing))
                fates.append(verdict.fate)
            decided = [fate for fate in fates if fate is not W]
            assert decided[:1] == [at_once.fate], (when, order)


def test_once_met_nothing_changes_it() -> None:
    verdict = learn(When.ONE_COMPLETED, 1, 2, False, news_of(MET))
    assert (verdict.unmet, verdict.awaited, verdict.fate) == (0, 0, R)
    later = learn(When.ONE_COMPLETED, verdict.unmet, verdict.awaited, verdict.amiss, news_of(FAILED))
    assert (later.unmet, later.awaited, later.fate) == (0, 0, W)


def test_a_group_that_goes_on_has_failed_and_not_ended() -> None:
    assert judge(When.ALL_DONE, 1, news_of(Standing.FAILING)).fate is W
    assert judge(When.ONE_FAILED, 1, news_of(Standing.FAILING)).fate is R
    assert judge(When.ALL_COMPLETED, 1, news_of(Standing.FAILING)).fate is D


def test_what_has_ended_without_completion_has_failed_whatever_is_told_first() -> None:
    assert learn(When.ONE_FAILED, 1, 1, False, News(ended=1)).fate is R
    assert learn(When.ONE_COMPLETED, 1, 1, False, News(ended=1)).fate is D


def test_a_rule_that_is_none_is_refused_by_name() -> None:
    assert check_when("one_failed") is When.ONE_FAILED
    with pytest.raises(InputError, match="when: 'sometimes' is not accepted: it must be one of all_completed"):
        check_when("sometimes")
