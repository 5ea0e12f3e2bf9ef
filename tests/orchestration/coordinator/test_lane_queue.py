"""Lanes in the order of their most urgent tasks; those that rest hold up no others."""

from __future__ import annotations

from aaiclick.orchestration.coordinator.lane_queue import LaneQueue, Place


def at_once(_: int) -> float:
    return 0.0


def heads_of(*ranks: int) -> dict[int, Place]:
    return {lane: (rank, 1, 1) for lane, rank in enumerate(ranks, 1)}


def test_the_most_urgent_comes_first_and_stays() -> None:
    queue = LaneQueue(heads_of(5, -1, 3), [1, 2, 3])
    assert queue.first(2, 0.0, at_once) == [2, 3]
    assert queue.first(9, 0.0, at_once) == [2, 3, 1]


def test_what_is_noted_afterwards_counts() -> None:
    heads = heads_of(5, -1, 3)
    queue = LaneQueue(heads, [1, 2, 3])
    heads[2] = (4, 1, 1)
    del heads[3]
    assert queue.first(9, 0.0, at_once) == [2, 1]


def test_a_lane_that_rests_holds_up_no_other_and_comes_back() -> None:
    queue = LaneQueue(heads_of(*range(100)), range(1, 101))
    assert queue.first(1, 0.0, lambda lane: 10.0 if lane < 100 else 0.0) == [100]
    assert queue.first(1, 9.0, at_once) == [100]
    assert queue.first(1, 10.0, at_once) == [1]


def test_lanes_that_rest_are_woken() -> None:
    heads = heads_of(1, 2)
    queue = LaneQueue(heads, [1, 2])
    assert queue.first(9, 0.0, lambda _: 10.0) == []
    del heads[1]
    queue.wake()
    assert queue.first(9, 0.0, at_once) == [2]
    assert queue.first(9, 99.0, at_once) == [2]
