"""The way to a process that runs bodies for a worker. One contract: what a run there needs, however it is reached."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from aaiclick.errors import AaiclickError
from aaiclick.orchestration.execution.executors.wire import Ended


class NeverBegan(AaiclickError):
    """The run cannot begin: {cause}."""


class Lost(NamedTuple):
    """The process that ran the body died, or cannot be reached any more."""

    cause: str
    hint: str = ""


Outcome = Ended | Lost
"""How a run came back."""


class Transport(Protocol):
    """One such process, which runs one body at a time.

    How a run is begun there is its own affair: descriptors go along with it, or bytes come back. It gives a future of
    its Outcome. What the run asks meanwhile goes to its `RunAnswers`.
    """

    spent: bool
    """Whether it should not be given another run."""

    def ask(self) -> None:
        """Ask the process to end its run."""

    def tell(self) -> None:
        """Interrupt the body."""

    def kill(self) -> None:
        """End the process, whatever it does; the outcome follows."""
