"""What tasks and groups wait for, counted from scratch.

The store keeps these counts as things happen; here they are worked out from what is, for what was cleared or is to be
checked. An ending that has not been told yet (a ripple is on its way) counts as one that has not come.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Waits:
    """What is known of some nodes and of all that they wait for."""

    into: dict[int, list[tuple[int, bool]]] = field(default_factory=dict)
    """Per node: who must come before it, and whether that was complete when the dependency was made."""
    complete: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    """What will never be complete unless someone clears it."""
    telling: dict[int, int] = field(default_factory=dict)
    """Complete nodes whose dependents are being told, up to which id so far."""
    opening: dict[int, int] = field(default_factory=dict)
    """Groups whose tasks are being told that they may begin, up to which id so far; 0: nobody yet."""
    unmet_groups: dict[int, int] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)
    """Groups that hold back what is in them."""
    drowned: dict[int, int] = field(default_factory=dict)
    """Groups that will never begin, each with what failed."""

    def unmet(self, node: int) -> int:
        """How many of its own predecessors a node waits for."""
        return sum(not self._is_met(previous, node, met) for previous, met in self.into.get(node, ()))

    def _is_met(self, previous: int, node: int, met: bool) -> bool:
        return previous in self.complete and (met or node <= self.telling.get(previous, node))

    def doomed_by(self, node: int, group: int | None) -> int | None:
        """What failed that a node in this group waits for, itself or by a group around it; None if nothing did."""
        if group is not None and group in self.drowned:
            return self.drowned[group]
        return next((previous for previous, _ in self.into.get(node, ()) if previous in self.failed), None)

    def count_groups(self, parents_first: Iterable[tuple[int, int | None]]) -> None:
        """Count what these groups wait for, each given with the group around it."""
        for group, parent in parents_first:
            self.unmet_groups[group] = self.unmet(group) + (parent in self.closed)
            if self.unmet_groups[group] or self.opening.get(group) == 0:
                self.closed.add(group)
            failed = self.doomed_by(group, parent)
            if failed is not None:
                self.drowned[group] = failed

    def is_gated(self, task: int, group: int | None, was: bool) -> bool:
        """Whether its group holds a task back; while the group is telling its tasks, the task's own word counts."""
        if group is None:
            return False
        return group in self.closed or (was and task > self.opening.get(group, task))
