"""What is waited for, counted from scratch."""

from __future__ import annotations

from aaiclick.orchestration.rules.graphs.wait_counts import Waits
from aaiclick.orchestration.rules.triggers import NEVER, When


def test_what_is_complete_is_not_waited_for() -> None:
    waits = Waits(into={3: [(1, False), (2, False)]}, complete={1})
    assert (waits.unmet(3), waits.unmet(4)) == (1, 0)


def test_what_is_complete_and_not_told_yet_is_waited_for() -> None:
    waits = Waits(into={5: [(1, False)], 9: [(1, False)], 10: [(1, True)]}, complete={1}, telling={1: 7})
    assert [waits.unmet(node) for node in (5, 9, 10)] == [0, 1, 0]


def test_groups_hold_back_what_is_in_them_at_any_depth() -> None:
    waits = Waits(into={11: [(1, False)]})
    waits.count_groups([(11, None), (12, 11), (13, 12), (14, None)])
    assert waits.unmet_groups == {11: 1, 12: 1, 13: 1, 14: 0}
    assert waits.closed == {11, 12, 13}
    assert [waits.is_gated(5, group, was=False) for group in (None, 11, 13, 14)] == [False, True, True, False]


def test_a_group_that_has_told_nobody_yet_is_closed_for_the_groups_in_it() -> None:
    waits = Waits(opening={11: 0, 13: 6})
    waits.count_groups([(11, None), (12, 11), (13, None), (14, 13)])
    assert waits.unmet_groups == {11: 0, 12: 1, 13: 0, 14: 0}
    assert waits.closed == {11, 12}


def test_while_a_group_tells_its_tasks_their_own_word_counts() -> None:
    waits = Waits(opening={13: 6})
    waits.count_groups([(13, None)])
    assert waits.is_gated(9, 13, was=True)
    assert not waits.is_gated(9, 13, was=False)
    assert not waits.is_gated(5, 13, was=True)


def test_a_stored_doom_without_a_failed_input_names_the_node_itself() -> None:
    waits = Waits(into={11: [(1, False)], 12: []}, complete={1})
    waits.rules = dict.fromkeys((11, 12), When.ONE_COMPLETED)
    for group in (11, 12):
        waits.keep(group, NEVER, True)
    waits.count_groups([(11, None), (12, None)])
    assert waits.drowned == {11: 11, 12: 12}


def test_doom_comes_by_an_edge_or_by_a_group_around() -> None:
    waits = Waits(into={11: [(1, False)], 5: [(1, False)], 6: [(2, False)]}, failed={1})
    waits.count_groups([(11, None), (12, 11), (13, None)])
    assert waits.drowned == {11: 1, 12: 1}
    assert [waits.doomed_by(node, group) for node, group in ((5, None), (6, None), (7, 12), (7, 13))] == [
        1,
        None,
        1,
        None,
    ]
