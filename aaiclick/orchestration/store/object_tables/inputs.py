"""What tasks need of tables that are there already: those that their arguments name, and the results these refer to.

Whoever makes a task need a table that it does not hold itself locks the table's row first: nobody drops it meanwhile.
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
"""How many tables that are gone an error names."""


async def tables_needed(session: Session, texts: Mapping[int, str], *, anew: Collection[int] = ()) -> set[Pin]:
    """Which tables these tasks need, each given with the text of its arguments, as far as they are known.

    Results of tasks that are to run anew do not count.
    """
    found = await read_named(session, texts.values(), but_not=anew)
    reading = InputReading(found)
    return {(task, table) for task, text in texts.items() for table in reading.reached(text)}


class _Named(NamedTuple):
    """What one text names."""

    tables: frozenset[str]
    tasks: list[int]


@dataclass(slots=True)
class InputReading:
    """Results that refer to results: each is looked at once."""

    found: FoundResults
    _seen: dict[int, _Named] = field(default_factory=dict)

    def reached(self, text: str) -> set[str]:
        """The tables that a text names, itself or by way of results."""
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
        """Whether a text names any table, itself or by way of results: no more of them is read than it takes."""
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
    """Let nobody drop these tables meanwhile; gives those that are gone, or as good as gone."""
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
    """Those of these tables that belong to other jobs."""
    found: set[str] = set()
    for batch in in_batches(sorted(names)):
        which = (table_context_refs.c.table_name.in_(batch), table_context_refs.c.job_id != job_id)
        found |= {row.table_name for row in await session.rows(select(table_context_refs.c.table_name).where(*which))}
    return found


async def pin_inputs(session: Session, texts: Mapping[int, str]) -> None:
    """Pin what these tasks need and is there; refused if something of it is gone."""
    if not texts:
        return
    needed = await tables_needed(session, texts)
    gone = await lock_tables(session, {table for _, table in needed})
    if gone:
        hint = "Run the tasks that made them again first: clear_task(…)."
        raise await inputs_gone(session, needed, gone, verb="added", hint=hint)
    await pin(session, needed)


def late_arguments(submission: Submission, shape: Shape, *, grown: bool) -> dict[int, str]:
    """The arguments of new tasks that may need tables which are there; those that a run hands on, it pins itself."""
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
    """The unfinished tasks of stored groups whose results are arguments of what is new.

    Locked before the groups are: whoever completes in them must see the new edges when it looks who needs its tables.
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
    """Which task lacks which table."""
    lacking = sorted((task, table) for task, table in needed if table in gone)
    shown = lacking[:SHOWN_MAX]
    which = session.any_of(tasks.c.id, sorted({task for task, _ in shown}))
    names = {row.id: row.name for row in await session.rows(select(tasks.c.id, tasks.c.name).where(which))}
    known = {task: f"task {name!r} ({task})" for task, name in names.items()}
    each = [f"{known.get(holder, f'job {holder}')} needs {table}" for holder, table in shown]
    if len(lacking) > len(shown):
        each.append(f"{len(lacking) - len(shown)} more")
    return InputsGone(verb=verb, each="; ".join(each), hint=hint, lacking=lacking)
