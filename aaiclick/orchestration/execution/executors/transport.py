"""The contract of transports. A transport connects a worker with a process that runs bodies for it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from aaiclick.errors import AaiclickError
from aaiclick.orchestration.execution.executors.wire import Ended


class NeverBegan(AaiclickError):
    """The run cannot begin: {cause}."""


class Lost(NamedTuple):
    """The outcome of a run whose process died or can no longer be reached: the cause, and a hint for the user."""

    cause: str
    hint: str = ""


Outcome = Ended | Lost
"""The outcome of a run: the process reported its end, or was lost."""


class Transport(Protocol):
    """A process that runs one body at a time.

    How a run is begun is up to the implementation, since it may pass descriptors, or send output back as bytes.
    Beginning a run returns a future of its Outcome. The run's questions go to its `RunAnswers`.
    """

    spent: bool
    """Whether the process must not be given another run."""

    def ask(self) -> None:
        """Ask the process to end its run."""

    def tell(self) -> None:
        """Interrupt the body."""

    def kill(self) -> None:
        """Kill the process. The future of the outcome is then resolved."""
