"""Resources as they are shown: each unit with what is free and who holds the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class ResourceHolder:
    """A run that holds a part of a unit."""

    task_id: int
    job_id: int | None
    """None if the job was deleted meanwhile."""
    name: str
    epoch: int
    worker_id: int
    amount: float
    is_ending: bool = False
    """Whether its claim was taken away, and its body is not known to be dead."""


@dataclass(slots=True, frozen=True)
class ResourceInfo:
    """A unit: a GPU of a node, or all that there is of something else on a node or for all."""

    name: str
    node: str | None
    """None: it is of the whole installation."""
    slot: int
    """The index of a GPU; 0 for all else."""
    size: float
    """Of a GPU with known memory, in megabytes."""
    free: float
    """Below 0 if the capacity was made smaller than what is held."""
    device: str | None = None
    memory_mb: int | None = None
    holders: Sequence[ResourceHolder] = ()
    more: int = 0
    """How many others hold a part."""
    scope: int = 0

    @property
    def place(self) -> str:
        """Where it is in the order of a list: `SCOPE.SLOT.NAME`."""
        return f"{self.scope}.{self.slot}.{self.name}"
