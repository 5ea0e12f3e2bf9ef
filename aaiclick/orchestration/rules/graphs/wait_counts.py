"""Counts from scratch what tasks and groups wait for, for clears and repairs.

Otherwise the store updates these counters step by step. An end whose ripple has not reached a node yet counts as one
that has not happened, because the ripple will still lower that node's counter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from aaiclick.orchestration.rules.triggers import ONE, Fate, News, Standing, Verdict, When, decided, judge


@dataclass(slots=True)
class Waits:
    """What is known of some nodes and of their predecessors; the counts are derived from it."""

    into: dict[int, list[tuple[int, bool]]] = field(default_factory=dict)
    """Per node: its predecessors, each with whether it was complete when the dependency was made."""
    complete: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    """Nodes that failed or were cancelled: they will not complete unless they are cleared."""
    skipped: set[int] = field(default_factory=set)
    """Those of `complete` that were skipped."""
    cancelled: set[int] = field(default_factory=set)
    """Those of `failed` that were cancelled."""
    failing: set[int] = field(default_factory=set)
    """Those of `failed` that are groups and have not ended."""
    rules: dict[int, When] = field(default_factory=dict)
    """The trigger rules of nodes whose rule is not ALL_COMPLETED."""
    kept: dict[int, Verdict] = field(default_factory=dict)
    """Final verdicts of nodes, which are not judged again."""
    telling: dict[int, int] = field(default_factory=dict)
    """Nodes whose end a ripple is passing on, with the id of the last dependent it has reached."""
    opening: dict[int, int] = field(default_factory=dict)
    """Groups that a ripple is opening, with the id of the last member task it has reached; 0 means none yet."""
    unmet_groups: dict[int, int] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)
    """Groups that hold back their members."""
    drowned: dict[int, int] = field(default_factory=dict)
    """Groups that will never begin, each with the predecessor that failed."""
    spared: set[int] = field(default_factory=set)
    """Groups that are skipped."""

    def stand(self, node: int, standing: Standing) -> None:
        """Note the standing of a node."""
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
        """Keep a node's stored verdict if its rule needs one input and it is final."""
        verdict = decided(awaited, amiss) if self.rules.get(node) in ONE else None
        if verdict is not None:
            self.kept[node] = verdict

    def hear(self, ripple_kind: str, node: int, node_type: str, after_id: int) -> None:
        """Note an unfinished ripple: whether it opens a group or passes on an end, and the last id it has reached."""
        if ripple_kind == "open":
            self.opening[node] = after_id
        elif ripple_kind in ("release", "end") or (ripple_kind == "doom" and node_type != "group"):
            self.telling[node] = after_id

    def unmet(self, node: int) -> int:
        """Return how many of its own predecessors a node waits for, without the groups around it."""
        return self.verdict(node).unmet

    def verdict(self, node: int) -> Verdict:
        """Judge a node by its own predecessors, without the groups around it."""
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
        """Return the failed node that dooms a node in this group, directly or through a group around it; else None.

        Doom takes precedence over skipping, as it does for new nodes. A node may be doomed by its stored verdict,
        although none of its inputs is a failed one: then it is itself given as the cause.
        """
        if group is not None and group in self.drowned:
            return self.drowned[group]
        if self.verdict(node).fate is not Fate.DOOMED:
            return None
        return next((previous for previous, _ in self.into.get(node, ()) if previous in self.failed), node)

    def is_spared(self, node: int, group: int | None) -> bool:
        """Return whether a node in this group is skipped, by its own rule or with a group around it."""
        if self.doomed_by(node, group) is not None:
            return False
        return group in self.spared or self.verdict(node).fate is Fate.SKIPPED

    def count_groups(self, parents_first: Iterable[tuple[int, int | None]]) -> None:
        """Count what these groups wait for; each is given with the group around it, outer groups first."""
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
        """Return whether its group holds a task back.

        While a ripple opens the group, the task's stored gate (`was`) counts if the ripple has not reached it yet.
        """
        if group is None:
            return False
        return group in self.closed or (was and task > self.opening.get(group, task))
