"""Random graphs, and more of them: small, with groups in groups, retries, and tasks that may fail."""

from __future__ import annotations

import random
from collections.abc import Sequence

from aaiclick.orchestration.models import Group, Task
from aaiclick.orchestration.models.node import Edge, Node
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.rules.triggers import When
from tests.simulation.engine import kwargs_of
from tests.simulation.places import place
from tests.simulation.scarce import ask
from tests.support.naive import NaiveJob


class Graphs:
    """What was submitted, by job."""

    def __init__(
        self, dice: random.Random, lanes: Sequence[int], *, is_placed: bool = False, is_scarce: bool = False
    ) -> None:
        self.dice = dice
        self.lanes = lanes
        self.rules = random.Random(16)  # apart: whether a task has a rule changes no other chance
        self.is_placed, self.places = is_placed, random.Random(17)
        self.is_scarce = is_scarce
        self.nodes: dict[int, list[Node]] = {}
        self.shapes: dict[int, NaiveJob] = {}

    def begin(self, job_id: int, size: int) -> Submission:
        """The graph of a new job."""
        self.nodes[job_id], self.shapes[job_id] = [], NaiveJob()
        return self.grow(job_id, size)

    def took(self, graph: Submission) -> None:
        """It is stored, as far as its sender knows."""
        self.nodes[graph.job_id] += [*graph.tasks, *graph.groups]
        self.shapes[graph.job_id].add(graph)

    def grow(self, job_id: int, size: int) -> Submission:
        """New tasks and groups, in groups new and old, with edges that close no circle."""
        known = self.nodes[job_id]
        stored = [node.id for node in known if isinstance(node, Group)]
        groups: list[Group] = []
        for number in range(self.dice.randint(0, size // 2)):
            homes = [None, *stored, *(group.id for group in groups)]
            groups.append(Group(f"g{number}", parent_group_id=self.dice.choice(homes), when=self._rule()))
        homes = [None, *stored, *(group.id for group in groups)]
        tasks = [self._task(self.dice.choice(homes)) for _ in range(self.dice.randint((size + 1) // 2, size))]
        graph = Submission(job_id, tasks, groups)
        everyone = sorted((*known, *groups, *tasks), key=lambda node: node.id)
        for _ in range(self.dice.randint(0, size) if len(everyone) > 1 else 0):
            graph.edges.append(Edge(*sorted(self.dice.sample(everyone, 2), key=lambda node: node.id)))
            if self.shapes[job_id].with_all(graph).has_cycle():
                graph.edges.pop()
        self._let_read(graph)
        return graph

    def _let_read(self, graph: Submission) -> None:
        """Some of the new tasks take what they wait for as their arguments."""
        for task in graph.tasks:
            before = [edge.previous for edge in graph.edges if edge.next is task and self.dice.random() < 0.7]
            if before:
                task.kwargs_json, task.needs_inputs = kwargs_of(*((node.kind, node.id) for node in before)), True

    def _task(self, group_id: int | None) -> Task:
        policy = RetryPolicy(self.dice.choice([0, 1, 2, 3]), delay_s=self.dice.choice([0.0, 0.5, 5.0]))
        priority = self.dice.choice([0, 0, 0, 1, -1])
        critical = self.dice.random() < 0.8
        options = {"retry": policy, "priority": priority, "critical": critical}
        task = Task("some.module.t", name="t", group_id=group_id, **options)  # type: ignore[arg-type]
        task.stop_when_cut_off = task.id % 8 != 0
        task.when = self._rule()
        task.lane = self.lanes[task.id % len(self.lanes)]
        if self.is_placed:
            place(task, self.places)
        if self.is_scarce:
            ask(task, self.places)
        return task

    def _rule(self) -> When:
        return self.rules.choice(list(When)) if self.rules.random() < 0.15 else When.ALL_COMPLETED
