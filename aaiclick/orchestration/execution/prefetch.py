"""Prefetched claims, which wait in the worker for a free slot.

While bodies are short, a few tasks are claimed before a slot is free, so that no slot idles during a claim call. They
amount to a few milliseconds of work only: claims that cannot begin soon are released for other workers.
"""

from __future__ import annotations

import asyncio

from aaiclick.orchestration.execution.holdings import Key
from aaiclick.orchestration.models import Claim

AHEAD_S = 0.02
"""The amount of work that may wait for each slot, in seconds of running time."""

AHEAD_MAX = 64
"""The maximum number of claims that wait."""

WAIT_S_MAX = 0.25
"""A claim that has waited this long is released: the running bodies take longer than recent ones did."""

LEARNING = 0.1


class Prefetch:
    """A queue of claims in the order of their arrival, with the moving average of running times."""

    def __init__(self) -> None:
        self.filled = asyncio.Event()
        self._waiting: dict[Key, tuple[Claim, float]] = {}
        self._run_s = 1.0

    def __len__(self) -> int:
        return len(self._waiting)

    def learn(self, run_s: float) -> None:
        """Add the duration of a run to the moving average."""
        self._run_s += LEARNING * (run_s - self._run_s)

    def length_wanted(self, slots: int) -> int:
        """Return how many claims should wait for this number of slots; 0 if runs are long."""
        return min(AHEAD_MAX, slots * int(AHEAD_S / max(self._run_s, 1e-6)))

    def join(self, claim: Claim, now: float) -> None:
        """Append a claim; one that holds resources goes to the front, so that it holds them idly for one body only."""
        mine = {(claim.task_id, claim.epoch): (claim, now)}
        self._waiting = mine | self._waiting if claim.grants else self._waiting | mine
        self.filled.set()

    def next(self) -> Claim:
        """Remove and return the oldest claim."""
        claim, _ = self._waiting[next(iter(self._waiting))]
        self.leave((claim.task_id, claim.epoch))
        return claim

    def leave(self, key: Key) -> bool:
        """Remove a claim. Return whether it was waiting."""
        left = self._waiting.pop(key, None) is not None
        if not self._waiting:
            self.filled.clear()
        return left

    def disperse(self, since: float | None = None) -> list[Claim]:
        """Remove and return all claims, or those that joined at or before `since`.

        If there were any, none are wanted until runs prove to be short again.
        """
        gone = [claim for claim, joined in self._waiting.values() if since is None or joined <= since]
        for claim in gone:
            self.leave((claim.task_id, claim.epoch))
        if gone:
            self._run_s = max(self._run_s, WAIT_S_MAX)
        return gone
