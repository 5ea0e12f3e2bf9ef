"""Wake-ups between processes: hints, never truth. A poll finds everything with all of them lost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class Bus(Protocol):
    """One process's way to tell others, and to hear from them. It belongs to the event loop that made it.

    Nothing here raises because others cannot be reached: a bus that is out of order is silent, tries again, and says so
    once in the log.
    """

    def tell(self, hints: Iterable[str]) -> None:
        """Say these to all who listen, this process included; returns at once. What is said while an earlier hint
        is still on its way travels with the next."""

    async def flush(self) -> None:
        """Wait until what was told is on its way: for whoever ends right after."""

    async def listen(self) -> None:
        """Begin to hear what others tell."""

    async def wait(self, timeout_s: float) -> frozenset[str]:
        """What was heard since the last call, at once if there is something; nothing when the time is up."""

    async def close(self) -> None:
        """Stop listening, and give everything back."""
