"""A model of one job that keeps nothing but statuses and computes the rest from scratch, however slow.

What the store maintains in counters is asked here each time anew: who is complete, who may begin, who never will.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from aaiclick.orchestration.models.submission import Submission
from tests.support.picture import Picture

ENDED = {"completed", "failed", "cancelled", "upstream_failed", "skipped"}
COMPLETE = {"completed", "skipped"}
FAILED = {"failed", "upstream_failed"}
LIVE = {"claimed", "running"}


@dataclass
class NaiveGraph:
    """The statuses of one job, and what follows from them."""

    status: dict[int, str] = field(default_factory=dict)
    """Of each task."""
    around: dict[int, int | None] = field(default_factory=dict)
    """The group that each task and group is in."""
    edges: set[tuple[int, int]] = field(default_factory=set)
    delayed: set[int] = field(default_factory=set)
    tolerable: set[int] = field(default_factory=set)
    """Tasks that may fail without failing the job."""
    rules: dict[int, str] = field(default_factory=dict)
    """The trigger rules of tasks and groups."""
    met: set[int] = field(default_factory=set)
    """Tasks and groups whose rule needs one input, and had it: what ends later changes nothing."""
    never: dict[int, str] = field(default_factory=dict)
    """Those that never had it, with the end that this means: what is added later changes nothing."""
    begun: bool = False
    cancelled: bool = False

    # ------------------------------------------------------------ questions

    def inside(self, group: int) -> list[int]:
        return [node for node, container in self.around.items() if container == group]

    def tasks_in(self, node: int) -> Iterator[int]:
        """The tasks of a group, at any depth, or the task itself."""
        if node in self.status:
            yield node
        else:
            for child in self.inside(node):
                yield from self.tasks_in(child)

    def is_complete(self, node: int) -> bool:
        return all(self.status[task] in COMPLETE for task in self.tasks_in(node))

    def has_ended(self, node: int) -> bool:
        return all(self.status[task] in ENDED for task in self.tasks_in(node))

    def has_failed(self, node: int) -> bool:
        """A cancelled task is no failure; a group with one in it is."""
        return self.is_amiss(node) and not self.was_cancelled(node)

    def was_cancelled(self, node: int) -> bool:
        return self.status.get(node) == "cancelled"

    def is_amiss(self, node: int) -> bool:
        return any(self.status[task] in ENDED - COMPLETE for task in self.tasks_in(node))

    def inputs(self, node: int) -> list[int]:
        return [previous for previous, following in self.edges if following == node]

    def is_met(self, node: int) -> bool:
        """Whether its own rule lets a task or a group begin."""
        inputs, rule = self.inputs(node), self.rules.get(node, "all_completed")
        ended = all(map(self.has_ended, inputs))
        failed, cancelled = any(map(self.has_failed, inputs)), any(map(self.was_cancelled, inputs))
        if rule == "all_completed":
            return all(map(self.is_complete, inputs))
        if rule == "none_failed":
            return ended and not failed
        if rule == "all_done":
            return ended and not cancelled
        if rule == "always":
            return ended
        if node in self.met or node in self.never:
            return node in self.met
        if rule == "one_failed":
            return failed
        return any(self.is_complete(each) and self.status.get(each) != "skipped" for each in inputs)

    def end_of(self, node: int) -> str | None:
        """How a task or a group ends whose own rule can never be met; None if it still can, or was."""
        inputs, rule = self.inputs(node), self.rules.get(node, "all_completed")
        if node in self.never:
            return self.never[node]
        if self.is_met(node):
            return None
        failed, cancelled = any(map(self.has_failed, inputs)), any(map(self.was_cancelled, inputs))
        if rule in ("one_completed", "one_failed"):
            never = all(map(self.has_ended, inputs))
        else:
            bears_failed, bears_cancelled = rule in ("all_done", "always"), rule in ("none_failed", "always")
            never = (failed and not bears_failed) or (cancelled and not bears_cancelled)
        if not never:
            return None
        return "upstream_failed" if any(map(self.is_amiss, inputs)) else "skipped"

    def ends_of(self, task: int) -> set[str]:
        """How a task may end that never can begin, by its own rule or by those of the groups around it."""
        found = {self.end_of(held) for held in (task, *self.containers(task))}
        return {end for end in found if end is not None}

    def containers(self, node: int) -> Iterator[int]:
        container = self.around[node]
        while container is not None:
            yield container
            container = self.around[container]

    def predecessors(self, node: int) -> set[int]:
        """All that holds this back, by an edge of its own or of a group around it."""
        held = {node, *self.containers(node)}
        return {previous for previous, following in self.edges if following in held}

    def waits_for(self, node: int) -> set[int]:
        """What has to complete before this and the groups around it may begin, or has to end, as their rules say."""
        closed = [held for held in (node, *self.containers(node)) if not self.is_met(held)]
        return {each for held in closed for each in self.inputs(held) if not self._is_past(each, held)}

    def failed_before(self, node: int) -> set[int]:
        """What failed, and so keeps this or a group around it from ever beginning."""
        doomed = [held for held in (node, *self.containers(node)) if self.end_of(held) is not None]
        return {each for held in doomed for each in self.inputs(held) if self.has_failed(each)}

    def _is_past(self, node: int, held: int) -> bool:
        return self.is_complete(node) if self._needs_all(held) else self.has_ended(node)

    def _needs_all(self, node: int) -> bool:
        return self.rules.get(node, "all_completed") == "all_completed"

    def may_begin(self, node: int) -> bool:
        return all(self.is_met(held) for held in (node, *self.containers(node)))

    def ready(self) -> set[int]:
        return {
            task
            for task, status in self.status.items()
            if status == "pending" and task not in self.delayed and self.may_begin(task)
        }

    def job_status(self) -> str:
        if self.cancelled:
            return "cancelled"
        if not self.status or not set(self.status.values()) <= ENDED:
            return "running" if self.begun else "pending"
        failed = any(status in FAILED and task not in self.tolerable for task, status in self.status.items())
        if failed:
            return "failed"
        return "cancelled" if "cancelled" in self.status.values() else "completed"


@dataclass
class NaiveJob(NaiveGraph):
    """One job."""

    # ------------------------------------------------------------ what happens

    def claim(self, tasks: Iterable[int]) -> None:
        for task in tasks:
            self.status[task] = "claimed"
            self.begun = True

    def end(self, task: int, status: str) -> None:
        self.status[task] = status
        self.settle()

    def give_back(self, task: int, *, delayed: bool = False) -> None:
        self.status[task] = "pending"
        if delayed:
            self.delayed.add(task)

    def settle(self) -> None:
        """Whatever can never begin ends, until nothing changes."""
        changing = True
        while changing:
            self.note_met()
            changing = False
            for task, status in self.status.items():
                if status != "pending":
                    continue
                ends = self.ends_of(task)
                if ends:
                    self.status[task] = "upstream_failed" if "upstream_failed" in ends else "skipped"
                    self.delayed.discard(task)
                    changing = True

    def note_met(self) -> None:
        one = {node for node, rule in self.rules.items() if rule.startswith("one_")}
        self.met |= {node for node in one if self.is_met(node)}
        ends = {node: self.end_of(node) for node in one}
        self.never |= {node: end for node, end in ends.items() if end is not None}

    def cancel(self) -> None:
        self.cancelled = True
        self.delayed.clear()
        self.status.update({task: "cancelled" for task, status in self.status.items() if status not in ENDED})

    # ------------------------------------------------------------ extensions

    def add(self, more: Submission) -> None:
        self.status.update({task.id: "pending" for task in more.tasks})
        self.around.update({node.id: node._group_id for node in (*more.tasks, *more.groups)})
        self.edges |= {(edge.previous.id, edge.next.id) for edge in more.edges}
        self.tolerable |= {task.id for task in more.tasks if not task.critical}
        self.rules.update({node.id: str(node.when) for node in (*more.tasks, *more.groups)})
        self.settle()

    def with_all(self, more: Submission) -> NaiveJob:
        copy = NaiveJob(dict(self.status), dict(self.around), set(self.edges))
        copy.rules = self.rules | {node.id: str(node.when) for node in (*more.tasks, *more.groups)}
        copy.status.update({task.id: "pending" for task in more.tasks})
        copy.around.update({node.id: node._group_id for node in (*more.tasks, *more.groups)})
        copy.edges |= {(edge.previous.id, edge.next.id) for edge in more.edges}
        return copy

    def refusal(self, more: Submission) -> str | None:
        """The name of the error with which this extension must be refused; None if it must be taken."""
        after = self.with_all(more)
        if after.has_cycle():
            return "CircularDependencyError"
        fresh = {(edge.previous.id, edge.next.id) for edge in more.edges} - self.edges
        for previous, following in sorted(fresh):
            if following in self.around and not after.bears(following, previous) and self.has_begun(following):
                return "AlreadyStarted"
        if self.would_reopen(more, after):
            return "GroupComplete"
        return "JobEnded" if self.job_status() in ENDED else None

    def bears(self, node: int, previous: int) -> bool:
        """Whether one more input that stands like this does not hold a node back."""
        rule = self.rules.get(node, "all_completed")
        if rule.startswith("one_"):
            return node not in self.status
        if self.is_complete(previous) or not self.has_ended(previous):
            return self.is_complete(previous)
        return rule == "always" or rule == ("none_failed" if self.was_cancelled(previous) else "all_done")

    def has_begun(self, node: int) -> bool:
        """Whether it is too late to hold this back."""
        if node in self.status:
            return self.status[node] != "pending"
        if not self.may_begin(node):
            return False
        return any(self.has_begun(child) for child in self.inside(node))

    def would_reopen(self, more: Submission, after: NaiveJob) -> bool:
        """Whether a group that has ended, and is waited for, would get more to complete."""
        for task in more.tasks:
            for group in after.containers(task.id):
                if group not in self.around:
                    continue
                if not self.has_ended(group):
                    break
                if any(previous == group for previous, _ in self.edges):
                    return True
        return False

    def has_cycle(self) -> bool:
        """Whether something waits for itself: a group has a beginning and an end, and its tasks are between."""
        sorter: TopologicalSorter[tuple[str, int]] = TopologicalSorter()
        for node, container in self.around.items():
            begin, end = points(node)
            sorter.add(end, begin)
            if container is not None:
                around_begin, around_end = points(container)
                sorter.add(begin, around_begin)
                sorter.add(around_end, end)
        for previous, following in self.edges:
            sorter.add(points(following)[0], points(previous)[1])
        try:
            sorter.prepare()
        except CycleError:
            return True
        return False


def naive_of(picture: Picture, job_id: int) -> NaiveJob:
    """One job as its rows have it: what follows from them is worked out anew.

    Whether a rule that needs one input was met is not seen in how these stand now, so that is taken as it is stored.
    """
    job = NaiveJob(begun=picture.jobs[job_id].status != "pending")
    mine = [row for row in (*picture.rows["tasks"], *picture.rows["groups"]) if row.job_id == job_id]
    for row in mine:
        job.around[row.id] = picture.container(row)
        job.rules[row.id] = row.trigger_rule
        if row.trigger_rule.startswith("one_") and row.awaited_count == 0:
            job.met.add(row.id)
        elif row.awaited_count < 0:
            job.never[row.id] = "upstream_failed" if row.amiss else "skipped"
    for task in picture.rows["tasks"]:
        if task.job_id == job_id:
            job.status[task.id] = task.status
            if not task.critical:
                job.tolerable.add(task.id)
    job.edges = {(edge.previous_id, edge.next_id) for edge in picture.edges if edge.job_id == job_id}
    return job


def points(node: int) -> tuple[tuple[str, int], tuple[str, int]]:
    return ("begin", node), ("end", node)


def downstream(job: NaiveJob, roots: Iterable[int]) -> set[int]:
    """These tasks and all that waits for them, however far."""
    found = set(roots)
    changing = True
    while changing:
        changing = False
        for task in job.status.keys() - found:
            if any(not found.isdisjoint(job.tasks_in(previous)) for previous in job.predecessors(task)):
                found.add(task)
                changing = True
    return found


def clear(job: NaiveJob, tasks: Iterable[int]) -> None:
    """Run these again; what waits for another failure stays doomed."""
    job.begun |= job.job_status() in ENDED
    job.cancelled = False
    tasks = set(tasks)
    for task in tasks:
        job.status[task] = "pending"
        job.delayed.discard(task)
    forget(job, tasks)
    job.settle()


def forget(job: NaiveJob, tasks: set[int]) -> None:
    """What these tasks, and all that waits for them, were told counts no more."""
    waiting = {
        node for node in job.around if any(not tasks.isdisjoint(job.tasks_in(each)) for each in job.inputs(node))
    }
    inside = {node for node in job.around if waiting & {*job.containers(node)}}
    for node in tasks | waiting | inside:
        job.met.discard(node)
        job.never.pop(node, None)
