"""The contract of the bus, which carries wake-ups between processes.

Wake-ups are hints only: if every one of them is lost, polling still finds all the work.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class Bus(Protocol):
    """Sends hints to other processes and receives theirs. A bus belongs to the event loop that created it.

    No method raises because other processes cannot be reached: a bus that has lost its transport logs the trouble,
    sends and receives nothing from outside, and tries again.
    """

    trouble: str
    """Why other processes are not reached now, in one line; empty while none is known. They find work by polling."""

    def tell(self, hints: Iterable[str]) -> None:
        """Send these hints to all listeners, including those of this process, and return at once.

        Hints that are told while an earlier message is being sent go together in the next message.
        """

    async def flush(self) -> None:
        """Wait until the hints told so far have been sent. Call it before the process exits."""

    async def listen(self) -> None:
        """Begin to receive the hints of others."""

    async def wait(self, timeout_s: float) -> frozenset[str]:
        """Return the hints received since the last call, at once if there are any; an empty set on timeout."""

    async def close(self) -> None:
        """Stop listening and release all resources."""
