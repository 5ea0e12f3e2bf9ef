"""The contract for references to tables, which change with every task that uses data.

Each of the four methods is one statement or a few, written in the database's own SQL and sent by its driver.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

if TYPE_CHECKING:
    from aaiclick.orchestration.store.session import Session

Key = tuple[int, int]
"""A run, as (task, epoch)."""

Pin = tuple[int, str]
"""A row of `table_pin_refs`: (task or job, table that it needs)."""

Ref = tuple[int, int, str]
"""A row of `table_run_refs`: (task, epoch, table that the run uses)."""


class Hold(NamedTuple):
    """The tables that a run asks to make."""

    task_id: int
    epoch: int
    tables: Sequence[str] = ()


class Seen(NamedTuple):
    """One row of the answer of `look`.

    `kind` is `ref` (task, epoch, table), `pin` (task, 0, table), `consumer` (task, task that needs its result) or
    `kept` (task, job that keeps its result). `grouped` (task, its group) occurs only until `with_groups` replaces it.
    """

    kind: str
    task_id: int
    other: int
    table: str | None


@dataclass(slots=True)
class Changes:
    """Changes of references that are written together."""

    pinned: list[Pin] = field(default_factory=list)
    """Pins to insert, or to make live again where they are freed."""
    unpinned: list[Pin] = field(default_factory=list)
    """Pins to delete: another reference will ask the leader to check the table."""
    freed: list[Pin] = field(default_factory=list)
    """Pins to mark `freed`, which asks the leader to check the table."""
    ended: list[Ref] = field(default_factory=list)
    """References of runs to mark `freed`; they are inserted if they have no row yet."""
    gone: list[Ref] = field(default_factory=list)
    """References of runs to delete."""
    forgotten: list[str] = field(default_factory=list)
    """Tables whose rows in `table_context_refs` are deleted."""


class TableMoves(Protocol):
    """How one database reads and changes references to tables."""

    at_once: ClassVar[bool]
    """`hold` is one statement, so it needs no BEGIN and COMMIT."""

    async def hold(self, session: Session, worker_id: int, holds: Sequence[Hold], *, refer: bool = True) -> set[Key]:
        """Register the tables of the runs that pass the fence, with a reference each; return these runs.

        Without `refer`, only the tables are registered. That is enough for the first table of a run that has just been
        claimed, since `keep_held` derives its name when the claim is taken away. Runs whose table was registered before
        may be missing in the answer then. The tasks stay locked until the transaction ends.
        """

    async def look(
        self, session: Session, runs: Collection[int], done: Collection[int], makers: Collection[int]
    ) -> list[Seen]:
        """Return the references of the tasks in `runs`, the live pins of those in `done`, the consumers of `makers`.

        Consumers are the tasks that need the result of a maker, and the job that keeps it.
        """

    async def change(self, session: Session, changes: Changes) -> None:
        """Apply these changes."""

    async def delete_freed(self, session: Session, refs: Sequence[Ref], pins: Sequence[Pin]) -> None:
        """Delete those of these references and pins that are still marked `freed`."""


def packed(rows: Sequence[Sequence[Any]]) -> str:
    """Return rows as one JSON value, which databases can read as a table."""
    return json.dumps(rows, separators=(",", ":"))


NEEDED = "consumer.needs_inputs AND consumer.status NOT IN ('completed', 'cancelled', 'skipped')"
"""The condition that a consumer will use its inputs, now or when it is run again."""

_REFS = "SELECT 'ref', task_id, epoch, table_name FROM table_run_refs WHERE task_id {runs}"
_PINS = "SELECT 'pin', task_id, 0, table_name FROM table_pin_refs WHERE task_id {done} AND NOT freed"
_KEPT = "SELECT 'kept', id, job_id, NULL FROM tasks WHERE id {makers} AND kept"
_IN_GROUPS = "SELECT 'grouped', id, group_id, NULL FROM tasks WHERE id {makers} AND group_id IS NOT NULL"
_CONSUMERS = (
    "SELECT 'consumer', edge.previous_id, edge.next_id, NULL FROM dependencies AS edge"
    " JOIN tasks AS consumer ON consumer.id = edge.next_id"
    f" WHERE edge.previous_id {{makers}} AND edge.next_type = 'task' AND {NEEDED}"
)


def looking(*, runs: str, done: str, makers: str) -> str:
    """Return the statement of `look`; each argument is a condition on task ids, empty if there are no such tasks."""
    parts = [*[_REFS] * bool(runs), *[_PINS] * bool(done), *[_KEPT, _IN_GROUPS, _CONSUMERS] * bool(makers)]
    return " UNION ALL ".join(parts).format(runs=runs, done=done, makers=makers)


AROUND = f"""
WITH RECURSIVE around (inner_id, group_id) AS (
    SELECT id, id FROM {{groups}} WHERE id {{wanted}}
    UNION ALL SELECT around.inner_id, {{groups}}.parent_group_id FROM around
    JOIN {{groups}} ON {{groups}}.id = around.group_id WHERE {{groups}}.parent_group_id IS NOT NULL
)
SELECT around.inner_id, edge.next_id FROM around
JOIN dependencies AS edge ON edge.previous_id = around.group_id AND edge.next_type = 'task'
JOIN tasks AS consumer ON consumer.id = edge.next_id
WHERE {NEEDED}
"""
"""Selects (group, task) for each task that depends on a group or on a group around it, and needs its inputs."""


def groups_of(seen: Sequence[Seen]) -> list[int]:
    """Return the groups of the makers, from the `grouped` rows."""
    return sorted({group for kind, _, group, _ in seen if kind == "grouped"})


def with_groups(seen: Sequence[Seen], around: Sequence[Sequence[int]]) -> list[Seen]:
    """Return what was seen, with each `grouped` row replaced by the tasks that depend on the group."""
    waiting: dict[int, list[int]] = {}
    for group, consumer in around:
        waiting.setdefault(group, []).append(consumer)
    found: list[Seen] = []
    for one in seen:
        if one.kind == "grouped":
            found += [Seen("consumer", one.task_id, consumer, None) for consumer in waiting.get(one.other, ())]
        else:
            found.append(one)
    return found
