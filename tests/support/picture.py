"""All rows of a database, and what follows from them, worked out the slow way."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from sqlalchemy import Row

from aaiclick.orchestration.rules.states import ENDED_JOB, ENDED_TASK

COMPLETE = {"completed", "skipped"}
FAILED = ENDED_TASK - COMPLETE


class Picture:
    """All rows, and what follows from them."""

    def __init__(self, rows: dict[str, list[Row[Any]]]) -> None:
        self.rows = rows
        self.tasks = {row.id: row for row in rows["tasks"]}
        self.groups = {row.id: row for row in rows["groups"]}
        self.jobs = {row.id: row for row in rows["jobs"]}
        self.edges = rows["dependencies"]
        self.into: dict[int, list[Row[Any]]] = defaultdict(list)
        for edge in self.edges:
            self.into[edge.next_id].append(edge)
        self.inside: dict[int, list[int]] = defaultdict(list)
        for row in (*rows["tasks"], *rows["groups"]):
            if self.container(row) is not None:
                self.inside[self.container(row)].append(row.id)  # type: ignore[index]
        self.telling = {
            row.node_id: row
            for row in rows["ripples"]
            if row.kind in ("release", "end") or (row.kind == "doom" and row.node_type != "group")
        }
        self.failing = {row.node_id: row for row in rows["ripples"] if row.kind == "doom"}
        self.opening = {row.node_id: row for row in rows["ripples"] if row.kind == "open"}
        self.dooming = {
            row.job_id for row in rows["ripples"] if row.kind in ("doom", "drown", "spare", "end", "release")
        }

    @staticmethod
    def container(row: Row[Any]) -> int | None:
        facts = row._mapping
        found: int | None = facts["group_id" if "group_id" in facts else "parent_group_id"]
        return found

    @cached_property
    def by_depth(self) -> list[Row[Any]]:
        """Groups, parents first."""
        return sorted(self.rows["groups"], key=lambda group: len(self.around(group.parent_group_id)))

    def around(self, group_id: int | None) -> list[int]:
        """This group and those around it, innermost first."""
        found: list[int] = []
        while group_id is not None:
            found.append(group_id)
            group_id = self.groups[group_id].parent_group_id
        return found

    @cached_property
    def complete(self) -> set[int]:
        """Completed tasks, and groups with nothing left to complete at any depth."""
        found = {row.id for row in self.rows["tasks"] if row.status in COMPLETE}
        for group in reversed(self.by_depth):
            if all(child in found for child in self.inside[group.id]):
                found.add(group.id)
        return found

    @cached_property
    def failed(self) -> set[int]:
        """Tasks that ended otherwise, and groups with such a task at any depth."""
        found = {row.id for row in self.rows["tasks"] if row.status in FAILED}
        for group in reversed(self.by_depth):
            if any(child in found for child in self.inside[group.id]):
                found.add(group.id)
        return found

    @cached_property
    def ended(self) -> set[int]:
        """Tasks that have ended, and groups in which all have."""
        found = {row.id for row in self.rows["tasks"] if row.status in ENDED_TASK}
        for group in reversed(self.by_depth):
            if all(child in found for child in self.inside[group.id]):
                found.add(group.id)
        return found

    def is_told(self, edge: Row[Any]) -> bool:
        """Whether the next has been told of the end of the previous."""
        telling = self.telling.get(edge.previous_id)
        return telling is None or edge.met or edge.next_id <= telling.after_id

    def is_heard(self, edge: Row[Any]) -> bool:
        """Whether the next has been told that the previous failed: a group may do so long before its end."""
        failing = self.failing.get(edge.previous_id)
        if failing is None or edge.next_id <= failing.after_id:
            return True
        return edge.previous_id in self.ended and self.is_told(edge)

    def is_met(self, edge: Row[Any]) -> bool:
        """Whether the previous is complete and the next has been told."""
        return edge.previous_id in self.complete and self.is_told(edge)

    def rule(self, node: int) -> str:
        row = self.tasks.get(node) or self.groups[node]
        rule: str = row.trigger_rule
        return rule

    def decided(self, node: int) -> int | None:
        """A rule that needs one input was met (0) or never will be (-1), whatever is added later; None if it waits."""
        row = self.tasks.get(node) or self.groups[node]
        return row.awaited_count if row.awaited_count <= 0 and row.trigger_rule.startswith("one_") else None

    def standings(self, node: int) -> Counter[str]:
        """How many inputs are as a rule may ask."""
        found: Counter[str] = Counter()
        for edge in self.into[node]:
            previous = edge.previous_id
            status = self.tasks[previous].status if previous in self.tasks else ""
            told = self.is_told(edge)
            found["complete"] += previous in self.complete and told
            found["hits"] += previous in self.complete and told and status != "skipped"
            found["cancelled"] += status == "cancelled"
            failed = previous in self.failed and status != "cancelled"
            found["failed"] += failed
            found["heard"] += failed and self.is_heard(edge)
            found["ended"] += failed and previous in self.ended and told
        return found

    def unmet(self, node: int) -> int:
        rule, edges = self.rule(node), self.into[node]
        if rule == "all_completed":
            return sum(not self.is_met(edge) for edge in edges)
        found = self.standings(node)
        if rule.startswith("one_"):
            decided = self.decided(node)
            return int(not found["hits" if rule == "one_completed" else "heard"]) if decided is None else -decided
        borne = found["complete"]
        borne += found["ended"] if rule in ("all_done", "always") else 0
        borne += found["cancelled"] if rule in ("none_failed", "always") else 0
        return len(edges) - borne

    def awaited(self, node: int) -> int:
        """0 once it was met, -1 if it never will be."""
        decided = self.decided(node)
        if decided is not None:
            return decided
        if not self.rule(node).startswith("one_") or not self.unmet(node):
            return 0
        found = self.standings(node)
        return len(self.into[node]) - found["complete"] - found["ended"] - found["cancelled"] or -1

    def is_never(self, node: int) -> bool:
        """Whether the node's own rule can be met no more."""
        rule = self.rule(node)
        if rule == "all_completed":
            return any(edge.previous_id in self.failed for edge in self.into[node])
        if rule.startswith("one_"):
            return self.awaited(node) == -1
        found = self.standings(node)
        bears_failed, bears_cancelled = rule in ("all_done", "always"), rule in ("none_failed", "always")
        return bool((found["failed"] and not bears_failed) or (found["cancelled"] and not bears_cancelled))

    @cached_property
    def closed(self) -> set[int]:
        """Groups whose tasks and groups have not been told that they may begin."""
        found = {group for group, ripple in self.opening.items() if not ripple.after_id}
        for group in self.by_depth:
            own = group.unmet_count if self.is_over(group) else self.unmet(group.id)
            if own or group.parent_group_id in found:
                found.add(group.id)
        return found

    def is_over(self, group: Row[Any]) -> bool:
        """A job that was ended by other hands leaves what its groups were told, by the rarer rules, as it was."""
        ended = group.id in self.ended or self.jobs[group.job_id].status in ENDED_JOB
        return ended and group.trigger_rule != "all_completed"

    @cached_property
    def doomed(self) -> set[int]:
        """Tasks and groups that wait for something that failed, themselves or by a group around them."""
        direct = {node for node in {edge.next_id for edge in self.edges} if self.is_never(node)}
        for group in self.by_depth:
            if group.parent_group_id in direct:
                direct.add(group.id)
        return direct | {row.id for row in self.rows["tasks"] if row.group_id in direct}

    def predecessors(self, task: Row[Any]) -> Iterator[int]:
        """All that this task waits for, by itself or by a group around it."""
        for node in (task.id, *self.around(task.group_id)):
            for edge in self.into[node]:
                yield edge.previous_id
