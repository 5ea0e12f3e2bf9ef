"""Tables that tasks need as inputs: those named in their arguments, and in the results that the arguments refer to.

A transaction that pins a task on a table which it does not hold itself locks the table's row in `table_context_refs`
first. The lock keeps the table from being dropped in between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import select

from aaiclick.errors import InputsGone
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.graphs.graph import Shape, descendants
from aaiclick.orchestration.rules.states import ENDED_TASK
from aaiclick.orchestration.rules.values.reference_marks import marks_of, mentions_objects
from aaiclick.orchestration.rules.values.run_tables import tables_named
from aaiclick.orchestration.store.dialects.table_moves import Pin
from aaiclick.orchestration.store.object_tables.references import in_batches, pin
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.stored_results import FoundResults, read_named
from aaiclick.orchestration.store.tables import table_context_refs, tasks

SHOWN_MAX = 10
"""How many missing tables an error message lists."""


async def tables_needed(session: Session, texts: Mapping[int, str], *, anew: Collection[int] = ()) -> set[Pin]:
    """Return (task, table) for each table that these tasks need; `texts` has the encoded arguments of each task.

    Only results that are stored already are followed. Results of tasks in `anew`, which will run again, are ignored.
    """
    found = await read_named(session, texts.values(), but_not=anew)
    reading = InputReading(found)
    return {(task, table) for task, text in texts.items() for table in reading.reached(text)}


class _Named(NamedTuple):
    """The tables and the tasks that one encoded text refers to."""

    tables: frozenset[str]
    tasks: list[int]


@dataclass(slots=True)
class InputReading:
    """Follows references through results that refer to other results; parses each result once."""

    found: FoundResults
    _seen: dict[int, _Named] = field(default_factory=dict)

    def reached(self, text: str) -> set[str]:
        """Return the tables that a text refers to, directly or through results."""
        named = self._named(text)
        tables, left, known = set(named.tables), list(named.tasks), set(named.tasks)
        while left:
            result = self._result(left.pop())
            tables |= result.tables
            fresh = [task for task in result.tasks if task not in known]
            known.update(fresh)
            left += fresh
        return tables

    def reaches_any(self, text: str) -> bool:
        """Return whether a text refers to any table, directly or through results; stop at the first one."""
        named = self._named(text)
        left, known = list(named.tasks), set(named.tasks)
        while left and not named.tables:
            named = self._result(left.pop())
            fresh = [task for task in named.tasks if task not in known]
            known.update(fresh)
            left += fresh
        return bool(named.tables)

    def _result(self, task: int) -> _Named:
        if task not in self._seen:
            self._seen[task] = self._named(self.found.texts.get(task))
        return self._seen[task]

    def _named(self, text: str | None) -> _Named:
        nodes: list[int] = []
        for kind, node in () if text is None else marks_of(text):
            if kind == "task" and isinstance(node, int):
                nodes.append(node)
            elif kind == "group" and isinstance(node, int):
                output = self.found.outputs.get(node)
                nodes += self.found.members.get(node, ()) if output is None else [output]
        return _Named(tables_named(text), nodes)


async def lock_tables(session: Session, names: Iterable[str], *, lock: bool = True) -> set[str]:
    """Lock the rows of these tables against dropping; return those that are gone or marked `dropping`.

    Without `lock` the rows are only read.
    """
    gone = set(names)
    for batch in in_batches(sorted(gone)):
        chosen = select(table_context_refs.c.table_name, table_context_refs.c.dropping).where(
            table_context_refs.c.table_name.in_(batch)
        )
        ordered = chosen.order_by(table_context_refs.c.table_name)
        rows = await session.rows(ordered.with_for_update() if lock else ordered)
        gone -= {row.table_name for row in rows if not row.dropping}
    return gone


async def of_other_jobs(session: Session, names: Collection[str], job_id: int) -> set[str]:
    """Return those of these tables that belong to jobs other than `job_id`."""
    found: set[str] = set()
    for batch in in_batches(sorted(names)):
        which = (table_context_refs.c.table_name.in_(batch), table_context_refs.c.job_id != job_id)
        found |= {row.table_name for row in await session.rows(select(table_context_refs.c.table_name).where(*which))}
    return found


async def pin_inputs(session: Session, texts: Mapping[int, str]) -> None:
    """Lock the tables that these tasks need, and pin the tasks on them.

    `texts` has the encoded arguments of each task. Raise InputsGone if a table is gone.
    """
    if not texts:
        return
    needed = await tables_needed(session, texts)
    gone = await lock_tables(session, {table for _, table in needed})
    if gone:
        hint = "Run the tasks that made them again first: clear_task(…)."
        raise await inputs_gone(session, needed, gone, verb="added", hint=hint)
    await pin(session, needed)


def late_arguments(submission: Submission, shape: Shape, *, grown: bool) -> dict[int, str]:
    """Return the encoded arguments of those new tasks that may need tables which exist already.

    These are tasks that take the result of a stored task or group, and tasks whose arguments mention tables. The
    latter are left out if a run made them (`grown`): a run pins the tables that it hands on (`settle_tables`).
    """
    late = {edge.next.id for edge in submission.edges if not _is_new(edge.previous.id, shape)}
    return {
        task.id: task.kwargs_json
        for task in submission.tasks
        if (task.needs_inputs and task.id in late) or (not grown and mentions_objects(task.kwargs_json))
    }


def _is_new(node: int, shape: Shape) -> bool:
    return node in shape.tasks or node in shape.groups


async def makers_to_come(
    session: Session, submission: Submission, parents: Mapping[int, int | None], *, grown: bool
) -> set[int]:
    """Return the unfinished tasks in stored groups on which new tasks depend for their results.

    The caller locks them before the groups. A task that completes there must see the new edges, since it then looks up
    which tasks need its tables. With `grown`, every edge from a stored group counts, not only those to tasks that read
    results.
    """
    reading = {task.id for task in submission.tasks if task.needs_inputs}
    edges = [edge for edge in submission.edges if edge.previous.id in parents]
    read = descendants(parents, {edge.previous.id for edge in edges if grown or edge.next.id in reading})
    if not read:
        return set()
    which = (session.any_of(tasks.c.group_id, sorted(read)), tasks.c.status.not_in(sorted(ENDED_TASK)))
    return {row.id for row in await session.rows(select(tasks.c.id).where(*which))}


async def inputs_gone(
    session: Session, needed: Iterable[Pin], gone: Collection[str], *, verb: str, hint: str
) -> InputsGone:
    """Build the InputsGone error, which names up to SHOWN_MAX pairs of task and missing table."""
    lacking = sorted((task, table) for task, table in needed if table in gone)
    shown = lacking[:SHOWN_MAX]
    which = session.any_of(tasks.c.id, sorted({task for task, _ in shown}))
    names = {row.id: row.name for row in await session.rows(select(tasks.c.id, tasks.c.name).where(which))}
    known = {task: f"task {name!r} ({task})" for task, name in names.items()}
    each = [f"{known.get(holder, f'job {holder}')} needs {table}" for holder, table in shown]
    if len(lacking) > len(shown):
        each.append(f"{len(lacking) - len(shown)} more")
    return InputsGone(verb=verb, each="; ".join(each), hint=hint, lacking=lacking)
