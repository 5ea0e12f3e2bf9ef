"""The tables. Wide rows that change seldom, and narrow ones (`ready`, `claims`, `delayed`) that change all the time.

No foreign key leads from a hot row to its job: it would lock the job row at every claim (pitfall T36).
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, Index, Integer, String, text

from aaiclick.orchestration.store.definitions.column_types import Id, JsonText, LongText, ReadAs, UtcTime
from aaiclick.orchestration.store.definitions.common_columns import BUSY, HOT, count, few, flag, key, known, rule, table
from aaiclick.orchestration.store.definitions.common_columns import metadata as metadata

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
    Index("ix_jobs_key", "key", unique=True),
    Index("ix_jobs_name", "name"),
    Index("ix_jobs_created", "created_at", "id"),
    Index("ix_jobs_status_created", "status", "created_at", "id"),
    Index("ix_jobs_registered", "registered_job_id", "status"),
    known("ix_jobs_backfill", "backfill_id", "status"),
    postgres=HOT,
)
"""`arguments`: what the workflow was called with, for people: shortened and masked."""

graph_locks = table("graph_locks", key("job_id"), postgres=HOT)
"""One row a job: whoever changes a committed graph holds it, so that two changes cannot close a cycle together."""

gone_jobs = table("gone_jobs", key("job_id"))
"""Jobs that are gone, and of which tasks, runs and edges are still to be removed, some at a time."""

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
    Column("output_task_id", Id),
    Column("parent_task_id", Id),
    count("unended_count"),
    rule("trigger_rule"),
    count("awaited_count"),
    flag("amiss"),
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
    count("epoch"),
    count("attempt"),
    count("crash_count"),
    count("lost_count"),
    count("unmet_count"),
    count("dependents_count"),
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
"""`met`: the previous had completed when the edge was made, so no counter waits for it."""

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
"""The tasks that may be claimed now, of each lane in the order in which they will be: rank is minus the priority."""

delayed = table(
    "delayed",
    Column("run_after", UtcTime, primary_key=True),
    key("task_id"),
    postgres=BUSY,
    with_rowid=False,
)
"""Tasks that would be ready but for their `run_after`."""

claims = table(
    "claims",
    key("worker_id"),
    key("task_id"),
    Column("epoch", Integer, nullable=False),
    count("claim_call"),
    postgres=BUSY,
    with_rowid=False,
)
"""Live claims: one row for each task that is claimed or running, with the number of the call that claimed it."""

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
"""What an ending still has to tell downstream, where it was too much for one transaction."""

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
)
"""The history of attempts, one row for each run that ended; the one under way is in its task's own row.

`late`: its worker reported after the claim was taken away. `report_digest`: of a report that could not be stored.
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
    count("tasks_completed"),
    count("tasks_failed"),
    Column("started_at", UtcTime, nullable=False),
    count("concurrency"),
    count("unreported_s"),
    Index("ix_workers_status", "status"),
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
"""Who leads, until when. It saves work and guards nothing: whatever a leader writes is conditional (pitfall T16)."""

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
"""What became of each time of a schedule; `job_id` is its latest run. The key lets one time run once at a time."""

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
"""Ranges of past times that are being run; all before `next_at` is done with."""

machine_ids = table(
    "machine_ids",
    Column("machine_id", Integer, primary_key=True, autoincrement=False),
    Column("high_water_ms", BigInteger, nullable=False),
)
"""Up to which time ids may have been made with each machine id (pitfall T19)."""

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
"""The object tables that orchestration knows, each written down before it is made.

`context_id` is the task that makes it, or the job it was given to. Whoever adds a reference to a table that it does not
hold already locks this row first, and whoever drops it does so too, and marks it `dropping`: from then on it is gone.
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
"""Which run makes which table, or goes on using it without its claim, until its worker says that the body is dead.

Then it is `freed`, which asks for a look. `claim_call`: which call had made that claim; 0 if the body asked.
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
"""Which task still needs which table, until it is `freed`, which asks whoever leads to look.

Where `task_id` is the job's own id, the job's result names the table.
"""

installation = table(
    "installation",
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("id", String(32), nullable=False),
)
"""One row: the random name of this installation, which its tables in ClickHouse carry in their comments."""

metrics = table(
    "metrics",
    Column("name", String(100), primary_key=True),
    Column("bucket", String(20), primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("seconds", Double, nullable=False),
)
"""What was counted from the events so far; the row `horizon` says up to which of them."""

job_metrics = table(
    "job_metrics",
    Column("job", String(200), primary_key=True),
    Column("name", String(100), primary_key=True),
    Column("bucket", String(20), primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("seconds", Double, nullable=False),
)
"""What of it belongs to jobs of these names."""
