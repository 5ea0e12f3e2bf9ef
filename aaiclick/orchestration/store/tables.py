"""The tables: wide ones that change seldom, and narrow ones (`ready`, `claims`, `delayed`) that change all the time.

No foreign key leads from a hot row to its job: it would lock the job's row at every claim (pitfall T36).
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, Index, Integer, String, text

from aaiclick.orchestration.store.definitions.column_types import Id, JsonText, LongText, ReadAs, UtcTime
from aaiclick.orchestration.store.definitions.common_columns import BUSY, HOT, count, few, flag, key, known, rule, table
from aaiclick.orchestration.store.definitions.common_columns import metadata as metadata
from aaiclick.orchestration.store.definitions.metric_tables import job_metrics as job_metrics
from aaiclick.orchestration.store.definitions.metric_tables import metrics as metrics

jobs = table(
    "jobs",
    key("id"),
    Column("name", String(200), nullable=False),
    Column("key", String(200)),
    Column("key_digest", String(64)),
    Column("status", String(20), nullable=False),
    Column("run_type", String(20), nullable=False),
    Column("registered_job_id", Id),
    Column("preservation_mode", String(10), nullable=False),
    Column("priority", Integer, nullable=False, server_default=text("0")),
    Column("reserved_for", BigInteger, nullable=False, server_default=text("0")),
    Column("timeout_s", Double),
    Column("result", JsonText),
    Column("error", LongText),
    count("total_tasks"),
    count("open_tasks"),
    count("completed_tasks"),
    count("failed_tasks"),
    count("failed_critical"),
    Column("created_at", UtcTime, nullable=False),
    Column("started_at", UtcTime),
    Column("completed_at", UtcTime),
    flag("fail_fast"),
    Column("scheduled_at", UtcTime),
    Column("backfill_id", Id),
    Column("arguments", JsonText),
    count("skipped_tasks"),
    count("lane"),
    Column("cache_mode", String(10), nullable=False, server_default=text("'use'")),
    Index("ix_jobs_key", "key", unique=True),
    Index("ix_jobs_name", "name"),
    Index("ix_jobs_created", "created_at", "id"),
    Index("ix_jobs_status_created", "status", "created_at", "id"),
    Index("ix_jobs_registered", "registered_job_id", "status"),
    known("ix_jobs_backfill", "backfill_id", "status"),
    postgres=HOT,
)
"""`arguments`: the arguments of the workflow, for people to read: shortened and masked. `lane`: what its tasks need."""

graph_locks = table("graph_locks", key("job_id"), postgres=HOT)
"""One row per job. Whoever changes a stored graph locks it: else two changes could close a cycle together."""

gone_jobs = table("gone_jobs", key("job_id"))
"""Deleted jobs whose tasks, runs and edges are still to be deleted, in batches."""

groups = table(
    "groups",
    key("id"),
    Column("job_id", Id, nullable=False),
    Column("parent_group_id", Id),
    Column("name", String(200), nullable=False),
    count("depth"),
    count("unmet_count"),
    count("open_count"),
    count("failed_count"),
    count("dependents_count"),
    Column("created_at", UtcTime, nullable=False),
    *(Column(name, Id) for name in ("output_task_id", "parent_task_id")),
    count("unended_count"),
    rule("trigger_rule"),
    count("awaited_count"),
    flag("amiss"),
    count("lane"),
    Index("ix_groups_job", "job_id"),
    Index("ix_groups_parent", "parent_group_id"),
    postgres=HOT,
)

tasks = table(
    "tasks",
    key("id"),
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
    *(count(name) for name in ("epoch", "attempt", "crash_count", "lost_count", "unmet_count", "dependents_count")),
    Column("gated", Boolean(create_constraint=False), nullable=False, server_default=text("false")),
    Column("needs_inputs", Boolean(create_constraint=False), nullable=False, server_default=text("false")),
    Column("critical", Boolean(create_constraint=False), nullable=False, server_default=text("true")),
    Column("priority", Integer, nullable=False, server_default=text("0")),
    Column("reserved_for", BigInteger, nullable=False, server_default=text("0")),
    Column("max_retries", Integer, nullable=False, server_default=text("0")),
    Column("retry_policy", String(2000)),
    Column("timeout_s", Double),
    Column("run_after", UtcTime),
    Column("created_at", UtcTime, nullable=False),
    Column("claimed_at", UtcTime),
    Column("started_at", UtcTime),
    Column("completed_at", UtcTime),
    count("generation"),
    flag("kept"),
    Column("cause_id", Id),
    Column("run_epoch", Integer, ReadAs("epoch")),
    Column("stop_when_cut_off", Boolean(create_constraint=False), nullable=False, server_default=text("true")),
    rule("trigger_rule"),
    count("awaited_count"),
    flag("amiss"),
    count("lane"),
    Column("cache_policy", String(2000)),
    Column("idempotency_key", String(200)),
    Column("cache_outcome", String(10)),
    Column("cached_from_id", Id),
    Index("ix_tasks_page", "job_id", "id"),
    Index("ix_tasks_group", "group_id"),
    Index("ix_tasks_parent", "parent_task_id"),
    postgres=HOT,
)

dependencies = table(
    "dependencies",
    key("previous_id"),
    Column("previous_type", String(5), primary_key=True),
    key("next_id"),
    Column("next_type", String(5), primary_key=True),
    Column("job_id", Id, nullable=False),
    Column("met", Boolean(create_constraint=False), nullable=False, server_default=text("false")),
    Index("ix_dependencies_next", "next_id"),
    Index("ix_dependencies_job", "job_id"),
)
"""`met`: the end of the previous node was counted when the edge was made, so no counter waits for it."""

ready = table(
    "ready",
    Column("reserved_for", BigInteger, primary_key=True, autoincrement=False),
    Column("lane", Integer, primary_key=True, autoincrement=False),
    Column("rank", Integer, primary_key=True, autoincrement=False),
    key("job_id"),
    key("task_id"),
    postgres=BUSY,
    with_rowid=False,
)
"""The tasks that may be claimed now. The key is the order of claims in each lane; `rank` is minus the priority."""

delayed = table(
    "delayed",
    Column("run_after", UtcTime, primary_key=True),
    key("task_id"),
    postgres=BUSY,
    with_rowid=False,
)
"""Tasks that would be ready if their `run_after` had passed."""

claims = table(
    "claims",
    key("worker_id"),
    key("task_id"),
    Column("epoch", Integer, nullable=False),
    count("claim_call"),
    postgres=BUSY,
    with_rowid=False,
)
"""Live claims: one row per claimed or running task. `claim_call`: the number of the call that claimed it."""

ripples = table(
    "ripples",
    key("id"),
    Column("job_id", Id, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("node_id", Id, nullable=False),
    Column("node_type", String(5), nullable=False),
    Column("after_id", Id, nullable=False, server_default=text("0")),
    Column("cause_id", Id),
    Index("ix_ripples_job", "job_id"),
)
"""What follows downstream from the end of a task or group, where it was too much for one transaction."""

runs = table(
    "runs",
    key("task_id"),
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
    flag("late"),
    Column("report_digest", String(64)),
    count("generation"),
)
"""The history of attempts: one row per run that ended. A run that still goes on is in the row of its task.

`late`: its worker reported after the claim was taken away. `report_digest`: of a report that could not be stored.
`generation`: how often its task had been cleared.
"""

events = table(
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

workers = table(
    "workers",
    key("id"),
    Column("name", String(200)),
    Column("hostname", String(255), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("status", String(20), nullable=False),
    Column("last_heartbeat", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    *(count(name) for name in ("tasks_completed", "tasks_failed")),
    Column("started_at", UtcTime, nullable=False),
    *(count(name) for name in ("concurrency", "unreported_s")),
    Column("node_id", Id),
    flag("cordoned"),
    Index("ix_workers_status", "status"),
    Index("ix_workers_node", "node_id"),
    postgres=HOT,
)

terms = table(
    "terms",
    Column("role", String(50), primary_key=True),
    Column("holder", Id, nullable=False),
    Column("term", BigInteger, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    postgres=HOT,
)
"""The leader, and until when. A term saves work and guards nothing: all writes of a leader are conditional (T16)."""

registered_jobs = table(
    "registered_jobs",
    key("id"),
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
    count("priority"),
    Column("timeout_s", Double),
    flag("fail_fast"),
    Column("keep_last", Integer),
    Column("placement", JsonText),
    Column("resources", JsonText),
    Index("ix_registered_jobs_name", "name", unique=True),
    Index("ix_registered_jobs_due", "next_run_at"),
)

fires = table(
    "fires",
    key("registered_job_id"),
    Column("fire_at", UtcTime, primary_key=True),
    Column("outcome", String(10), nullable=False),
    Column("job_id", Id),
    Column("backfill_id", Id),
    Column("created_at", UtcTime, nullable=False),
    Index("ix_fires_outcome", "outcome", "registered_job_id", "fire_at"),
    Index("ix_fires_job", "job_id"),
    with_rowid=False,
)
"""What became of each time of a schedule; `job_id` is its latest run. The key keeps it from running twice at once."""

backfills = table(
    "backfills",
    key("id"),
    Column("registered_job_id", Id, nullable=False),
    Column("schedule", String(200), nullable=False),
    Column("timezone", String(100), nullable=False),
    Column("kwargs", JsonText, nullable=False),
    Column("start_at", UtcTime, nullable=False),
    Column("end_at", UtcTime, nullable=False),
    Column("next_at", UtcTime, nullable=False),
    Column("parallel_max", Integer, nullable=False),
    Column("status", String(30), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("completed_at", UtcTime),
    flag("force"),
    flag("failed_only"),
    count("total"),
    count("left_alone"),
    flag("from_outside"),
    Index("ix_backfills_status", "status", "id"),
    Index("ix_backfills_registered", "registered_job_id", "id"),
)
"""Ranges of past times of a schedule that are run; all times before `next_at` are dealt with."""

machine_ids = table(
    "machine_ids",
    Column("machine_id", Integer, primary_key=True, autoincrement=False),
    Column("high_water_ms", BigInteger, nullable=False),
)
"""Per machine id, the time (ms) up to which ids may have been made with it (pitfall T19)."""

table_context_refs = table(
    "table_context_refs",
    Column("table_name", String(100), primary_key=True),
    Column("context_id", Id, nullable=False),
    Column("job_id", Id, nullable=False),
    count("epoch"),
    flag("preserved"),
    flag("dropping"),
    Column("created_at", UtcTime, nullable=False),
    Index("ix_table_context_refs_job", "job_id"),
    few("ix_table_context_refs_dropping", "dropping"),
    postgres=HOT,
    with_rowid=False,
)
"""The ClickHouse tables of Objects that orchestration knows; each is recorded before it is made.

`context_id`: the task that makes it, or the job it was given to. To add a reference to a table that it does not hold,
or to drop it, a transaction locks this row first. A row that is `dropping` counts as gone.
"""

table_run_refs = table(
    "table_run_refs",
    key("task_id"),
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("table_name", String(100), primary_key=True),
    Column("worker_id", Id, nullable=False),
    flag("freed"),
    count("claim_call"),
    Index("ix_table_run_refs_table", "table_name"),
    few("ix_table_run_refs_freed", "freed"),
    postgres=HOT,
    with_rowid=False,
)
"""Tables that a run makes, or goes on using without its claim, until its worker says that the body is dead.

The row is `freed` then, and the leader looks at the table. `claim_call`: the call that made the claim; 0 if the body
asked for the table.
"""

table_pin_refs = table(
    "table_pin_refs",
    key("task_id"),
    Column("table_name", String(100), primary_key=True),
    flag("freed"),
    Index("ix_table_pin_refs_table", "table_name"),
    few("ix_table_pin_refs_freed", "freed"),
    postgres=HOT,
    with_rowid=False,
)
"""Tables that a task still needs. Once the row is `freed` it does not, and the leader looks at the table.

Where `task_id` is the job's own id, the job's result names the table.
"""

installation = table(
    "installation",
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("id", String(32), nullable=False),
)
"""One row: the random name of this installation, which is in the comments of its tables in ClickHouse."""
