"""The lanes that one node meets, in the order of their most urgent tasks; some rest for a while."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

Place: TypeAlias = tuple[int, int, int]
"""The place of a task in its lane: rank, job, task."""


class LaneQueue:
    """A heap of lanes. What is noted of a lane in `heads` afterwards is put right when its turn comes."""

    def __init__(self, heads: Mapping[int, Place], lanes: Iterable[int]) -> None:
        self._heads = heads
        """Where the first task of each lane with work is. Its owner changes it."""
        self._heap = [(heads[lane], lane) for lane in lanes]
        heapq.heapify(self._heap)
        self._resting: list[tuple[float, int]] = []
        """Lanes that are not asked before a time."""

    def first(self, most: int, now: float, rests_until: Callable[[int], float]) -> list[int]:
        """Return the first lanes that may be asked now, at most so many.

        `rests_until` says when a lane may be asked; until then it holds up no other.
        """
        while self._resting and self._resting[0][0] <= now:
            self._enter(heapq.heappop(self._resting)[1])
        chosen: list[int] = []
        while self._heap and len(chosen) < most:
            place, lane = heapq.heappop(self._heap)
            if self._heads.get(lane) != place:
                self._enter(lane)
            elif (until := rests_until(lane)) > now:
                heapq.heappush(self._resting, (until, lane))
            else:
                chosen.append(lane)
        for lane in chosen:
            self._enter(lane)
        return chosen

    def wake(self) -> None:
        """Let all lanes be asked again that rest: why they did may be over."""
        for _, lane in self._resting:
            self._enter(lane)
        self._resting.clear()

    def _enter(self, lane: int) -> None:
        """Put a lane where its first task belongs; one without work leaves."""
        if lane in self._heads:
            heapq.heappush(self._heap, (self._heads[lane], lane))
