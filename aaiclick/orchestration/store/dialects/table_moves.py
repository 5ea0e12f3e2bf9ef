"""What the store asks of a database about references to tables: they change with every task that uses data.

Each of the four moves is a statement or a few, in the database's own words, sent by its driver.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

if TYPE_CHECKING:
    from aaiclick.orchestration.store.session import Session

Key = tuple[int, int]
"""A run: (task, epoch)."""

Pin = tuple[int, str]
"""Who needs which table: (task, or job, and table)."""

Ref = tuple[int, int, str]
"""Which run uses which table: (task, epoch, table)."""


class Hold(NamedTuple):
    """The tables that a run may make."""

    task_id: int
    epoch: int
    tables: Sequence[str] = ()


class Seen(NamedTuple):
    """One thing that is known of tables and tasks.

    `kind` is `ref` (task, epoch, table), `pin` (task, 0, table), `consumer` (task, who waits for its result) or `kept`
    (task, the job that keeps its result).
    """

    kind: str
    task_id: int
    other: int
    table: str | None


@dataclass(slots=True)
class Changes:
    """What becomes of references."""

    pinned: list[Pin] = field(default_factory=list)
    """Needed from now on, also where an older pin has ended."""
    unpinned: list[Pin] = field(default_factory=list)
    """Deleted: something else asks whoever leads to look at the table."""
    freed: list[Pin] = field(default_factory=list)
    """Marked, which asks whoever leads to look."""
    ended: list[Ref] = field(default_factory=list)
    """Of runs: marked, also those that were never written down."""
    gone: list[Ref] = field(default_factory=list)
    """Of runs: deleted."""
    forgotten: list[str] = field(default_factory=list)
    """Tables that nothing is to be known of."""


class TableMoves(Protocol):
    """The answers of one database."""

    at_once: ClassVar[bool]
    """`hold` is one statement, and so needs no BEGIN and COMMIT around it."""

    async def hold(self, session: Session, worker_id: int, holds: Sequence[Hold], *, refer: bool = True) -> set[Key]:
        """Lock the tasks; write down the tables of those runs whose fence holds, with references; gives these runs.

        Not to `refer` is enough for the first table of a run that has just been claimed: whoever takes the claim away
        knows its name. Those that were known before may be missing in the answer then.
        """

    async def look(
        self, session: Session, runs: Collection[int], done: Collection[int], makers: Collection[int]
    ) -> list[Seen]:
        """What runs of these tasks refer to, what those that are done had pinned, and who needs the makers' results."""

    async def change(self, session: Session, changes: Changes) -> None:
        """Write what becomes of references."""

    async def delete_freed(self, session: Session, refs: Sequence[Ref], pins: Sequence[Pin]) -> None:
        """Delete exactly these, if they are still marked."""


def packed(rows: Sequence[Sequence[Any]]) -> str:
    """Rows as one value: JSON is read as a table by all three."""
    return json.dumps(rows, separators=(",", ":"))


NEEDED = "consumer.needs_inputs AND consumer.status NOT IN ('completed', 'cancelled', 'skipped')"
"""A consumer that will use its inputs, now or when it is tried again."""

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
    """The statement of a look, with the condition on each kind of tasks; there are none of a kind without one."""
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
"""Who depends on groups, or on what is around them."""


def groups_of(seen: Sequence[Seen]) -> list[int]:
    """The groups in which results are made."""
    return sorted({group for kind, _, group, _ in seen if kind == "grouped"})


def with_groups(seen: Sequence[Seen], around: Sequence[Sequence[int]]) -> list[Seen]:
    """What was seen, with those who depend on groups instead of the groups."""
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
