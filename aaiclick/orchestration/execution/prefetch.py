"""Claims that wait in the worker for a slot.

While bodies are short, a few are claimed before a slot is free, so that no slot waits for the state's answer. It is
never more than some milliseconds of work: what cannot begin soon is given back, for others to take.
"""

from __future__ import annotations

import asyncio

from aaiclick.orchestration.execution.holdings import Key
from aaiclick.orchestration.models import Claim

AHEAD_S = 0.02
"""How much work may wait in line for each slot."""

AHEAD_MAX = 64
"""How many claims may wait in line."""

WAIT_S_MAX = 0.25
"""Who has waited for so long is given back: the bodies before it are not as short as those were."""

LEARNING = 0.1


class Prefetch:
    """Claims in the order in which they came."""

    def __init__(self) -> None:
        self.filled = asyncio.Event()
        self._waiting: dict[Key, tuple[Claim, float]] = {}
        self._run_s = 1.0

    def __len__(self) -> int:
        return len(self._waiting)

    def learn(self, run_s: float) -> None:
        """A run took so long."""
        self._run_s += LEARNING * (run_s - self._run_s)

    def length_wanted(self, slots: int) -> int:
        """How many had better wait behind so many slots; none, where runs are long."""
        return min(AHEAD_MAX, slots * int(AHEAD_S / max(self._run_s, 1e-6)))

    def join(self, claim: Claim, now: float) -> None:
        """Wait for a slot."""
        self._waiting[claim.task_id, claim.epoch] = claim, now
        self.filled.set()

    def next(self) -> Claim:
        """Whoever has waited longest."""
        claim, _ = self._waiting[next(iter(self._waiting))]
        self.leave((claim.task_id, claim.epoch))
        return claim

    def leave(self, key: Key) -> bool:
        """This one waits no more; says whether it did."""
        left = self._waiting.pop(key, None) is not None
        if not self._waiting:
            self.filled.clear()
        return left

    def disperse(self, since: float | None = None) -> list[Claim]:
        """Take out all, or those who wait since then; no more are wanted until runs are seen to be short again."""
        gone = [claim for claim, joined in self._waiting.values() if since is None or joined <= since]
        for claim in gone:
            self.leave((claim.task_id, claim.epoch))
        if gone:
            self._run_s = max(self._run_s, WAIT_S_MAX)
        return gone
