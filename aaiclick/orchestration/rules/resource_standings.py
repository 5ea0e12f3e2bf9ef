"""Resources as they are shown: each unit with what is free and who holds the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aaiclick.orchestration.rules.resources import GPU, described, unit_names
from aaiclick.orchestration.rules.validation import escape_for_terminal

SHOWN_MAX = 5
"""Units, and holders of each, that a line for people tells of."""


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


def told(units: Sequence[ResourceInfo], needs: Mapping[str, float]) -> str:
    """Return what is needed, what is free, and who holds the rest, as one line."""
    lacking = [name for name in unit_names(needs) if name not in {unit.name for unit in units}]
    words = [_told(unit) for unit in units[:SHOWN_MAX]]
    if len(units) > SHOWN_MAX:
        words.append(f"and {len(units) - SHOWN_MAX} more")
    words += [f"nobody has {name}" for name in lacking]
    return f"it needs {described(needs)}: {', '.join(words)}"


def _told(unit: ResourceInfo) -> str:
    where = "" if unit.node is None else f" on {escape_for_terminal(unit.node)}"
    index = f" {unit.slot}" if unit.name == GPU else ""
    held = [
        f"{holder.task_id} '{escape_for_terminal(holder.name)}'{', which is ending' if holder.is_ending else ''}"
        for holder in unit.holders[:SHOWN_MAX]
    ]
    left = len(unit.holders) + unit.more - len(held)
    by = "; ".join([*held, *([f"{left} more"] if left else [])])
    return f"{unit.name}{index}{where} has {unit.free} of {unit.size} free{f' (held by task {by})' if by else ''}"
