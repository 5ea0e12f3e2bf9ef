"""What must hold after every commit: questions whose answer is no row, a full recount, and what may not go back."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from aaiclick.orchestration.store import tables
from aaiclick.orchestration.store.definitions.column_types import SQLITE_TIME
from tests.simulation.state import State
from tests.support.invariants import CHECKS
from tests.support.picture import Picture

ALWAYS = {
    "a claim's worker exists": """
        SELECT c.task_id, c.worker_id FROM claims c LEFT JOIN workers w ON w.id = c.worker_id WHERE w.id IS NULL""",
    "a session ends in time": "SELECT id, expires_at FROM workers WHERE status != 'stopped' AND expires_at > :latest",
    "no heartbeat comes from the future": "SELECT id, last_heartbeat FROM workers WHERE last_heartbeat > :now",
}
"""After every commit."""

ON_CHANGES = {
    "a claim belongs to a live task": """
        SELECT c.task_id, c.epoch FROM claims c LEFT JOIN tasks t
            ON t.id = c.task_id AND t.epoch = c.epoch AND t.worker_id = c.worker_id
            AND t.status IN ('claimed', 'running')
        WHERE t.id IS NULL""",
    "a live task has one claim": """
        SELECT t.id, t.epoch, count(c.task_id) FROM tasks t LEFT JOIN claims c ON c.task_id = t.id
        WHERE t.status IN ('claimed', 'running') GROUP BY t.id HAVING count(c.task_id) != 1""",
    "a run ends once": "SELECT task_id, epoch FROM runs GROUP BY task_id, epoch HAVING count(*) > 1",
    "a completed task has the result of its own run": """
        SELECT id, epoch, worker_id, result FROM tasks
        WHERE status = 'completed'
            AND (json_extract(result, '$.epoch') != epoch OR json_extract(result, '$.worker') != worker_id)""",
    "nobody claims after its session's end": """
        SELECT e.task_id, e.epoch, w.id FROM events e JOIN workers w ON w.id = e.worker_id
        WHERE e.move = 'claim' AND w.status = 'stopped' AND e.at > w.expires_at""",
    "only what was lost is recovered": """
        SELECT e.task_id, e.epoch, w.id, w.status FROM events e JOIN workers w ON w.id = e.worker_id
        WHERE e.move = 'recover' AND w.status != 'stopped'""",
    "a task is completed once in each generation": """
        SELECT r.task_id, count(*) FROM runs r WHERE r.outcome = 'completed'
        GROUP BY r.task_id, (SELECT count(*) FROM events e
            WHERE e.task_id = r.task_id AND e.move = 'clear' AND e.epoch < r.epoch)
        HAVING count(*) > 1""",
    "what a run made is there with its completion, and goes with it": """
        SELECT c.id, c.parent_task_id, c.parent_epoch FROM tasks c LEFT JOIN tasks p
            ON p.id = c.parent_task_id AND p.epoch = c.parent_epoch AND p.status = 'completed'
        WHERE c.parent_task_id IS NOT NULL AND p.id IS NULL""",
    "a run makes its tasks once": """
        SELECT p.id, count(*) FROM tasks p JOIN tasks c ON c.parent_task_id = p.id
        GROUP BY p.id HAVING count(DISTINCT c.parent_epoch) > 1""",
    "whoever waits for a task waits for what it returned": """
        SELECT x.id, p.id, r.id FROM tasks p, json_each(p.result, '$.marks') m
        JOIN dependencies d ON d.previous_id = p.id JOIN tasks x ON x.id = d.next_id
        JOIN tasks r ON r.id = json_extract(m.value, '$[2]')
        WHERE x.status IN ('claimed', 'running', 'completed') AND x.trigger_rule = 'all_completed'
        AND r.status NOT IN ('completed', 'skipped')""",
    "a scheduled job is the run of one time": """
        SELECT j.id, count(f.job_id) FROM jobs j LEFT JOIN fires f ON f.job_id = j.id
        WHERE j.run_type = 'scheduled' GROUP BY j.id HAVING count(f.job_id) != 1""",
    "a time that ran has its job": """
        SELECT f.registered_job_id, f.fire_at, f.job_id FROM fires f LEFT JOIN jobs j ON j.id = f.job_id
        WHERE (f.outcome = 'run') != (j.id IS NOT NULL)""",
    "nothing needs mending": "SELECT job_id, detail FROM events WHERE move = 'repair'",
}
"""After every commit that wrote more than sessions, terms and what became of reconcilers; the recount goes with it."""

AT_REST = {
    "every job ends": """
        SELECT id, status, open_tasks FROM jobs WHERE status NOT IN ('completed', 'failed', 'cancelled')""",
    "no claim is left": "SELECT task_id, epoch, worker_id FROM claims",
    "no ripple is left": "SELECT job_id, kind, node_id FROM ripples",
    "no task is delayed": "SELECT task_id, run_after FROM delayed",
    "no task is ready": "SELECT task_id FROM ready",
    "whoever is told to leave is gone": "SELECT id, expires_at FROM workers WHERE status = 'stopping'",
}
"""A while after the last fault."""


def broken(state: State, questions: dict[str, str], values: dict[str, Any] | None = None) -> Iterator[str]:
    """The questions that were answered, each with its first answers."""
    for name, sql in questions.items():
        found = state.driver.execute(sql, values or {}).fetchmany(3)
        if found:
            yield f"{name}: {found}"


# ---------------------------------------------------------------- the recount

_ORDER = {"tasks": "id", "events": "id"}
_READ = ("tasks", "events", "jobs", "groups", "dependencies", "ready", "delayed", "claims", "ripples", "runs")


@cache
def _row_of(table: str) -> Any:
    """Rows like those that the checks were written for."""
    fields = [column.name for column in tables.metadata.tables[table].columns]
    kind = namedtuple(table, fields)  # type: ignore[misc]
    kind._mapping = property(lambda row: row._asdict())  # type: ignore[attr-defined]
    return kind


def recount(state: State) -> Iterator[str]:
    """The invariants of all store tests, over rows that are read without SQLAlchemy: ten times as fast."""
    rows: dict[str, list[Any]] = {}
    for table in _READ:
        row = _row_of(table)
        chosen = f"SELECT {', '.join(row._fields)} FROM {table} ORDER BY {_ORDER.get(table, 1)}"
        rows[table] = [row._make(found) for found in state.driver.execute(chosen)]
    picture = Picture(rows)
    for check in CHECKS:
        yield from (f"{check.__name__}: {what}" for what in check(picture))


# ---------------------------------------------------------------- what may not go back

SLACK_S = 5.0
"""What lies between a decision and its commit where nobody hangs."""


class History:
    """What was seen last, to compare with what is there now."""

    def __init__(self, session_s: float) -> None:
        self.session_s = session_s
        self.tasks: dict[int, tuple[int, int, str]] = {}
        self.terms: dict[str, int] = {}
        self.sessions: dict[int, tuple[str, str]] = {}
        self.renewed: dict[int, datetime] = {}
        """When each session was renewed, by the database's time, whatever was written."""
        self.outage_until = datetime.min.replace(tzinfo=UTC)
        """The end of the last outage that nobody could overlook."""

    def compare_tasks(self, state: State) -> Iterator[str]:
        for task, epoch, generation, status in state.rows("SELECT id, epoch, generation, status FROM tasks"):
            before_epoch, before_generation, before = self.tasks.get(task, (0, 0, "pending"))
            if (epoch, generation) < (before_epoch, before_generation) or generation < before_generation:
                yield f"the epoch never falls: task {task} had {before_epoch} and has {epoch}"
            if before in ("claimed", "running") and status == "pending" and epoch == before_epoch:
                yield f"every way back makes the epoch grow: task {task} still has {epoch}"
            if status == "claimed" and before != "claimed" and epoch == before_epoch:
                yield f"every claim makes the epoch grow: task {task} still has {epoch}"
            self.tasks[task] = (epoch, generation, status)

    def compare_sessions(self, state: State, party_worker: int | None, now: datetime, waited_s: float) -> Iterator[str]:
        """`party_worker` is whose commit it was, `waited_s` how long ago it was decided upon."""
        for worker, status, expires_at in state.rows("SELECT id, status, expires_at FROM workers"):
            before, before_expiry = self.sessions.get(worker, ("", ""))
            if before == "stopped" and status != "stopped":
                yield f"a session that ended never comes back: worker {worker}"
            if expires_at != before_expiry and status != "stopped":
                self.renewed[worker] = now
            if status == "stopped" and before not in ("stopped", "") and worker != party_worker:
                yield from self._ended_by_another(worker, now, waited_s)
            self.sessions[worker] = (status, expires_at)

    def _ended_by_another(self, worker: int, now: datetime, waited_s: float) -> Iterator[str]:
        """Whoever sweeps may end a session only once its time is up, and not right after an outage."""
        if now < self.renewed[worker] + timedelta(seconds=self.session_s):
            yield f"a session lives its time: worker {worker} renewed it at {self.renewed[worker]}, ended at {now}"
        soon = self.outage_until + timedelta(seconds=self.session_s - SLACK_S)
        if now < soon and waited_s < SLACK_S:
            yield f"an outage is not a crash: worker {worker}, {now - self.outage_until} after it"

    def compare_terms(self, state: State) -> Iterator[str]:
        for role, term in state.rows("SELECT role, term FROM terms"):
            if term < self.terms.get(role, 0):
                yield f"terms grow: {role} had {self.terms[role]} and has {term}"
            self.terms[role] = term


def written(moment: datetime) -> str:
    """A time as SQLite keeps it."""
    return moment.strftime(SQLITE_TIME)
