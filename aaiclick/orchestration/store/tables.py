"""The tables. Wide rows that change seldom, and narrow ones (`ready`, `claims`, `delayed`) that change all the time.

No foreign key leads from a hot row to its job: it would lock the job row at every claim (pitfall T36).
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, Index, Integer, MetaData, String, Table, text
from sqlalchemy.schema import SchemaItem

from aaiclick.orchestration.store.columns import Id, JsonText, LongText, UtcTime

metadata = MetaData()

_BUSY = {
    "autovacuum_vacuum_scale_factor": 0.02,
    "autovacuum_vacuum_threshold": 1000,
    "autovacuum_vacuum_cost_delay": 0,
}
_HOT = {"fillfactor": 50, **_BUSY}
"""For rows that are updated: room on the page lets PostgreSQL leave the indexes alone."""


def _table(name: str, *items: SchemaItem, postgres: dict[str, float] | None = None, with_rowid: bool = True) -> Table:
    """Names compare exactly on all three: MariaDB's default collation ignores case, accents and trailing blanks."""
    return Table(
        name,
        metadata,
        *items,
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_nopad_bin",
        mariadb_engine="InnoDB",
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_nopad_bin",
        postgresql_with=postgres or {},
        sqlite_with_rowid=with_rowid,
    )


def _count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text("0"))


def _few(name: str, flag: str) -> Index:
    """The rows whose flag is set, which are few: where a database can, the others are not in the index."""
    return Index(name, flag, postgresql_where=text(flag), sqlite_where=text(f"{flag} = 1"))


def _flag(name: str) -> Column[bool]:
    return Column(name, Boolean(create_constraint=False), nullable=False, server_default=text("false"))


def _key(name: str) -> Column[int]:
    return Column(name, Id, primary_key=True, autoincrement=False)


table_of, key_column = _table, _key
"""For tables that have a file of their own."""

jobs = _table(
    "jobs",
    _key("id"),
    Column("name", String(200), nullable=False),
    Column("key", String(200)),
    Column("key_digest", String(64)),
    Column("status", String(20), nullable=False),
    Column("run_type", String(20), nullable=False),
    Column("registered_job_id", Id),
    Column("preservation_mode", String(10), nullable=False),
    Column("priority", Integer, nullable=False, server_default=text("0")),
    Column("placement", BigInteger, nullable=False, server_default=text("0")),
    Column("timeout_s", Double),
    Column("result", JsonText),
    Column("error", LongText),
    _count("total_tasks"),
    _count("open_tasks"),
    _count("completed_tasks"),
    _count("failed_tasks"),
    _count("failed_critical"),
    Column("created_at", UtcTime, nullable=False),
    Column("started_at", UtcTime),
    Column("completed_at", UtcTime),
    _flag("fail_fast"),
    Index("ix_jobs_key", "key", unique=True),
    Index("ix_jobs_name", "name"),
    Index("ix_jobs_status", "status", "id"),
    Index("ix_jobs_registered", "registered_job_id", "status"),
    postgres=_HOT,
)

graph_locks = _table("graph_locks", _key("job_id"), postgres=_HOT)
"""One row a job: whoever changes a committed graph holds it, so that two changes cannot close a cycle together."""

groups = _table(
    "groups",
    _key("id"),
    Column("job_id", Id, nullable=False),
    Column("parent_group_id", Id),
    Column("name", String(200), nullable=False),
    _count("depth"),
    _count("unmet_count"),
    _count("open_count"),
    _count("failed_count"),
    _count("dependents_count"),
    Column("created_at", UtcTime, nullable=False),
    Column("output_task_id", Id),
    Column("parent_task_id", Id),
    Index("ix_groups_job", "job_id"),
    Index("ix_groups_parent", "parent_group_id"),
    postgres=_HOT,
)

tasks = _table(
    "tasks",
    _key("id"),
    Column("job_id", Id, nullable=False),
    Column("group_id", Id),
    Column("parent_task_id", Id),
    Column("parent_epoch", Integer),
    Column("name", String(200), nullable=False),
    Column("entrypoint", String(500), nullable=False),
    Column("kwargs", JsonText, nullable=False),
    Column("status", String(20), nullable=False),
    Column("result", JsonText),
    Column("error", LongText),
    Column("log_path", String(1000)),
    Column("worker_id", Id),
    _count("epoch"),
    _count("attempt"),
    _count("crash_count"),
    _count("lost_count"),
    _count("unmet_count"),
    _count("dependents_count"),
    Column("gated", Boolean(create_constraint=False), nullable=False, server_default=text("false")),
    Column("needs_inputs", Boolean(create_constraint=False), nullable=False, server_default=text("false")),
    Column("critical", Boolean(create_constraint=False), nullable=False, server_default=text("true")),
    Column("priority", Integer, nullable=False, server_default=text("0")),
    Column("placement", BigInteger, nullable=False, server_default=text("0")),
    Column("max_retries", Integer, nullable=False, server_default=text("0")),
    Column("retry_policy", String(2000)),
    Column("timeout_s", Double),
    Column("run_after", UtcTime),
    Column("created_at", UtcTime, nullable=False),
    Column("claimed_at", UtcTime),
    Column("started_at", UtcTime),
    Column("completed_at", UtcTime),
    _count("generation"),
    _flag("kept"),
    Index("ix_tasks_page", "job_id", "id"),
    Index("ix_tasks_group", "group_id"),
    Index("ix_tasks_parent", "parent_task_id"),
    postgres=_HOT,
)

dependencies = _table(
    "dependencies",
    _key("previous_id"),
    Column("previous_type", String(5), primary_key=True),
    _key("next_id"),
    Column("next_type", String(5), primary_key=True),
    Column("job_id", Id, nullable=False),
    Column("met", Boolean(create_constraint=False), nullable=False, server_default=text("false")),
    Index("ix_dependencies_next", "next_id"),
    Index("ix_dependencies_job", "job_id"),
)
"""`met`: the previous had completed when the edge was made, so no counter waits for it."""

ready = _table(
    "ready",
    Column("placement", BigInteger, primary_key=True, autoincrement=False),
    Column("rank", Integer, primary_key=True, autoincrement=False),
    _key("job_id"),
    _key("task_id"),
    postgres=_BUSY,
    with_rowid=False,
)
"""The tasks that may be claimed now, in the order in which they will be: rank is minus the priority."""

delayed = _table(
    "delayed",
    Column("run_after", UtcTime, primary_key=True),
    _key("task_id"),
    postgres=_BUSY,
    with_rowid=False,
)
"""Tasks that would be ready but for their `run_after`."""

claims = _table(
    "claims",
    _key("worker_id"),
    _key("task_id"),
    Column("epoch", Integer, nullable=False),
    _count("claim_call"),
    postgres=_BUSY,
    with_rowid=False,
)
"""Live claims: one row for each task that is claimed or running, with the number of the call that claimed it."""

ripples = _table(
    "ripples",
    _key("id"),
    Column("job_id", Id, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("node_id", Id, nullable=False),
    Column("node_type", String(5), nullable=False),
    Column("after_id", Id, nullable=False, server_default=text("0")),
    Index("ix_ripples_job", "job_id"),
)
"""What an ending still has to tell downstream, where it was too much for one transaction."""

runs = _table(
    "runs",
    _key("task_id"),
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("attempt", Integer, nullable=False),
    Column("worker_id", Id),
    Column("claimed_at", UtcTime),
    Column("started_at", UtcTime),
    Column("ended_at", UtcTime, nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("error", LongText),
    Column("traceback", LongText),
    Column("log_path", String(1000)),
)
"""The history of attempts, one row for each run that ended; the one under way is in its task's own row."""

events = _table(
    "events",
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("job_id", Id, nullable=False),
    Column("task_id", Id),
    Column("epoch", Integer),
    Column("move", String(20), nullable=False),
    Column("status", String(20), nullable=False),
    Column("worker_id", Id),
    Column("at", UtcTime, nullable=False),
    Column("detail", LongText),
    Index("ix_events_job", "job_id", "id"),
)

workers = _table(
    "workers",
    _key("id"),
    Column("name", String(200)),
    Column("hostname", String(255), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("status", String(20), nullable=False),
    Column("last_heartbeat", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    _count("tasks_completed"),
    _count("tasks_failed"),
    Column("started_at", UtcTime, nullable=False),
    _count("concurrency"),
    Index("ix_workers_status", "status"),
    postgres=_HOT,
)

terms = _table(
    "terms",
    Column("role", String(50), primary_key=True),
    Column("holder", Id, nullable=False),
    Column("term", BigInteger, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    postgres=_HOT,
)
"""Who leads, until when. It saves work and guards nothing: whatever a leader writes is conditional (pitfall T16)."""

registered_jobs = _table(
    "registered_jobs",
    _key("id"),
    Column("name", String(200), nullable=False),
    Column("entrypoint", String(500), nullable=False),
    Column("enabled", Boolean(create_constraint=False), nullable=False, server_default=text("true")),
    Column("schedule", String(200)),
    Column("default_kwargs", JsonText, nullable=False),
    Column("preservation_mode", String(10)),
    Column("next_run_at", UtcTime),
    Column("created_at", UtcTime, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    Column("timezone", String(100), nullable=False, server_default=text("'UTC'")),
    Column("missed_runs", String(10), nullable=False, server_default=text("'latest'")),
    Column("missed_max", Integer, nullable=False, server_default=text("10")),
    Column("overlap", String(10), nullable=False, server_default=text("'allow'")),
    Column("time_kwarg", String(200)),
    _count("priority"),
    Column("timeout_s", Double),
    _flag("fail_fast"),
    Index("ix_registered_jobs_name", "name", unique=True),
    Index("ix_registered_jobs_due", "next_run_at"),
)

fires = _table(
    "fires",
    _key("registered_job_id"),
    Column("fire_at", UtcTime, primary_key=True),
    Column("outcome", String(10), nullable=False),
    Column("job_id", Id),
    Column("backfill_id", Id),
    Column("created_at", UtcTime, nullable=False),
    Index("ix_fires_outcome", "outcome", "registered_job_id", "fire_at"),
    Index("ix_fires_job", "job_id"),
    with_rowid=False,
)
"""What became of each time of a schedule: the key lets one time have one run, whoever else is at it."""

backfills = _table(
    "backfills",
    _key("id"),
    Column("registered_job_id", Id, nullable=False),
    Column("schedule", String(200), nullable=False),
    Column("timezone", String(100), nullable=False),
    Column("kwargs", JsonText, nullable=False),
    Column("start_at", UtcTime, nullable=False),
    Column("end_at", UtcTime, nullable=False),
    Column("next_at", UtcTime, nullable=False),
    Column("parallel_max", Integer, nullable=False),
    Column("status", String(20), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("completed_at", UtcTime),
    Index("ix_backfills_status", "status", "id"),
    Index("ix_backfills_registered", "registered_job_id", "id"),
)
"""Ranges of past times that are being run; all before `next_at` is done with."""

machine_ids = _table(
    "machine_ids",
    Column("machine_id", Integer, primary_key=True, autoincrement=False),
    Column("high_water_ms", BigInteger, nullable=False),
)
"""Up to which time ids may have been made with each machine id (pitfall T19)."""

table_context_refs = _table(
    "table_context_refs",
    Column("table_name", String(100), primary_key=True),
    Column("context_id", Id, nullable=False),
    Column("job_id", Id, nullable=False),
    _count("epoch"),
    _flag("preserved"),
    _flag("dropping"),
    Column("created_at", UtcTime, nullable=False),
    Index("ix_table_context_refs_job", "job_id"),
    _few("ix_table_context_refs_dropping", "dropping"),
    postgres=_HOT,
    with_rowid=False,
)
"""The object tables that orchestration knows, each written down before it is made.

`context_id` is the task that makes it, or the job it was given to. Whoever adds a reference to a table that it does not
hold already locks this row first, and whoever drops it does so too, and marks it `dropping`: from then on it is gone.
"""

table_run_refs = _table(
    "table_run_refs",
    _key("task_id"),
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("table_name", String(100), primary_key=True),
    Column("worker_id", Id, nullable=False),
    _flag("freed"),
    _count("claim_call"),
    Index("ix_table_run_refs_table", "table_name"),
    _few("ix_table_run_refs_freed", "freed"),
    postgres=_HOT,
    with_rowid=False,
)
"""Which run makes which table, or goes on using it without its claim, until its worker says that the body is dead.

Then it is `freed`, which asks for a look. `claim_call`: which call had made that claim; 0 if the body asked.
"""

table_pin_refs = _table(
    "table_pin_refs",
    _key("task_id"),
    Column("table_name", String(100), primary_key=True),
    _flag("freed"),
    Index("ix_table_pin_refs_table", "table_name"),
    _few("ix_table_pin_refs_freed", "freed"),
    postgres=_HOT,
    with_rowid=False,
)
"""Which task still needs which table, until it is `freed`, which asks whoever leads to look.

Where `task_id` is the job's own id, the job's result names the table.
"""

installation = _table(
    "installation",
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("id", String(32), nullable=False),
)
"""One row: the random name of this installation, which its tables in ClickHouse carry in their comments."""

metrics = _table(
    "metrics",
    Column("name", String(100), primary_key=True),
    Column("bucket", String(20), primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("seconds", Double, nullable=False),
)
"""What was counted from the events so far; the row `horizon` says up to which of them."""
