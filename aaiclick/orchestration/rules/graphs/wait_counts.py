"""What tasks and groups wait for, counted from scratch.

The store keeps these counts as things happen; here they are worked out from what is, for what was cleared or is to be
checked. An ending that has not been told yet (a ripple is on its way) counts as one that has not come.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from aaiclick.orchestration.rules.triggers import ONE, Fate, News, Standing, Verdict, When, decided, judge


@dataclass(slots=True)
class Waits:
    """What is known of some nodes and of all that they wait for."""

    into: dict[int, list[tuple[int, bool]]] = field(default_factory=dict)
    """Per node: who must come before it, and whether that was complete when the dependency was made."""
    complete: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    """What will never be complete unless someone clears it."""
    skipped: set[int] = field(default_factory=set)
    """Of the complete tasks, those that were not needed."""
    cancelled: set[int] = field(default_factory=set)
    """Of the failed tasks, those that someone stopped."""
    failing: set[int] = field(default_factory=set)
    """Of the failed groups, those in which something goes on."""
    rules: dict[int, When] = field(default_factory=dict)
    """The trigger rules of those that do not wait for everything to complete."""
    kept: dict[int, Verdict] = field(default_factory=dict)
    """What nodes were told for good, of which this is not asked anew."""
    telling: dict[int, int] = field(default_factory=dict)
    """Nodes whose end is being told to those who wait, up to which id so far."""
    opening: dict[int, int] = field(default_factory=dict)
    """Groups whose tasks are being told that they may begin, up to which id so far; 0: nobody yet."""
    unmet_groups: dict[int, int] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)
    """Groups that hold back what is in them."""
    drowned: dict[int, int] = field(default_factory=dict)
    """Groups that will never begin, each with what failed."""
    spared: set[int] = field(default_factory=set)
    """Groups that are not needed."""

    def stand(self, node: int, standing: Standing) -> None:
        """Note how a node stands."""
        if standing in (Standing.MET, Standing.SKIPPED):
            self.complete.add(node)
            if standing is Standing.SKIPPED:
                self.skipped.add(node)
        elif standing is not Standing.OPEN:
            self.failed.add(node)
            if standing is Standing.CANCELLED:
                self.cancelled.add(node)
            elif standing is Standing.FAILING:
                self.failing.add(node)

    def keep(self, node: int, awaited: int, amiss: bool) -> None:
        """Leave it at what a node was told, if its rule needs one input and that is decided."""
        verdict = decided(awaited, amiss) if self.rules.get(node) in ONE else None
        if verdict is not None:
            self.kept[node] = verdict

    def hear(self, ripple_kind: str, node: int, node_type: str, after_id: int) -> None:
        """Note what a ripple is still telling, and how far it got."""
        if ripple_kind == "open":
            self.opening[node] = after_id
        elif ripple_kind in ("release", "end") or (ripple_kind == "doom" and node_type != "group"):
            self.telling[node] = after_id

    def unmet(self, node: int) -> int:
        """How much of its own a node waits for."""
        return self.verdict(node).unmet

    def verdict(self, node: int) -> Verdict:
        """How a node waits for its own predecessors, and what comes of it."""
        if node in self.kept:
            return self.kept[node]
        news = News()
        inputs = self.into.get(node, ())
        for previous, met in inputs:
            news.add(self._standing(previous, met or node <= self.telling.get(previous, node)))
        return judge(self.rules.get(node, When.ALL_COMPLETED), len(inputs), news)

    def _standing(self, previous: int, told: bool) -> Standing:
        if previous in self.complete:
            if not told:
                return Standing.OPEN
            return Standing.SKIPPED if previous in self.skipped else Standing.MET
        if previous in self.cancelled:
            return Standing.CANCELLED
        if previous in self.failed:
            return Standing.FAILED if told and previous not in self.failing else Standing.FAILING
        return Standing.OPEN

    def doomed_by(self, node: int, group: int | None) -> int | None:
        """What failed that a node in this group waits for, itself or by a group around it; None if nothing did.

        That counts more than not being needed, as it does for what is new.
        """
        if group is not None and group in self.drowned:
            return self.drowned[group]
        if self.verdict(node).fate is not Fate.DOOMED:
            return None
        return next(previous for previous, _ in self.into.get(node, ()) if previous in self.failed)

    def is_spared(self, node: int, group: int | None) -> bool:
        """Whether a node in this group is not needed, itself or by a group around it."""
        if self.doomed_by(node, group) is not None:
            return False
        return group in self.spared or self.verdict(node).fate is Fate.SKIPPED

    def count_groups(self, parents_first: Iterable[tuple[int, int | None]]) -> None:
        """Count what these groups wait for, each given with the group around it."""
        for group, parent in parents_first:
            self.unmet_groups[group] = self.unmet(group) + (parent in self.closed)
            if self.unmet_groups[group] or self.opening.get(group) == 0:
                self.closed.add(group)
            failed = self.doomed_by(group, parent)
            if failed is not None:
                self.drowned[group] = failed
            elif self.is_spared(group, parent):
                self.spared.add(group)

    def is_gated(self, task: int, group: int | None, was: bool) -> bool:
        """Whether its group holds a task back; while the group is telling its tasks, the task's own word counts."""
        if group is None:
            return False
        return group in self.closed or (was and task > self.opening.get(group, task))
