"""Jobs, tasks, groups, dependencies, claims, runs, events, workers, registered jobs and machine ids."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, Double, Integer, String, text
from sqlalchemy.schema import SchemaItem

from aaiclick.orchestration.store.definitions.column_types import Id, JsonText, LongText, UtcTime

revision = "0001"
down_revision = None

BUSY = {
    "autovacuum_vacuum_scale_factor": 0.02,
    "autovacuum_vacuum_threshold": 1000,
    "autovacuum_vacuum_cost_delay": 0,
}
HOT = {"fillfactor": 50, **BUSY}


def upgrade() -> None:
    create_jobs()
    create_graph_locks()
    create_groups()
    create_tasks()
    create_dependencies()
    create_ready()
    create_delayed()
    create_claims()
    create_ripples()
    create_runs()
    create_events()
    create_workers()
    create_registered_jobs()
    create_machine_ids()


def create_jobs() -> None:
    create_table(
        "jobs",
        key("id"),
        Column("name", String(200), nullable=False),
        Column("key", String(200)),
        Column("key_digest", String(64)),
        Column("status", String(20), nullable=False),
        Column("run_type", String(20), nullable=False),
        Column("registered_job_id", Id),
        Column("preservation_mode", String(10), nullable=False),
        count("priority"),
        Column("placement", BigInteger, nullable=False, server_default=text("0")),
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
        postgres=HOT,
    )
    create_index("ix_jobs_key", "jobs", "key", unique=True)
    create_index("ix_jobs_name", "jobs", "name")
    create_index("ix_jobs_status", "jobs", "status", "id")


def create_graph_locks() -> None:
    create_table("graph_locks", key("job_id"), postgres=HOT)


def create_groups() -> None:
    create_table(
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
        postgres=HOT,
    )
    create_index("ix_groups_job", "groups", "job_id")
    create_index("ix_groups_parent", "groups", "parent_group_id")


def create_tasks() -> None:
    create_table(
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
        flag("gated", "false"),
        flag("needs_inputs", "false"),
        flag("critical", "true"),
        count("priority"),
        Column("placement", BigInteger, nullable=False, server_default=text("0")),
        count("max_retries"),
        Column("retry_policy", String(2000)),
        Column("timeout_s", Double),
        Column("run_after", UtcTime),
        Column("created_at", UtcTime, nullable=False),
        Column("claimed_at", UtcTime),
        Column("started_at", UtcTime),
        Column("completed_at", UtcTime),
        postgres=HOT,
    )
    create_index("ix_tasks_job", "tasks", "job_id")
    create_index("ix_tasks_group", "tasks", "group_id")
    create_index("ix_tasks_parent", "tasks", "parent_task_id")


def create_dependencies() -> None:
    create_table(
        "dependencies",
        key("previous_id"),
        Column("previous_type", String(5), primary_key=True),
        key("next_id"),
        Column("next_type", String(5), primary_key=True),
        Column("job_id", Id, nullable=False),
        flag("met", "false"),
    )
    create_index("ix_dependencies_next", "dependencies", "next_id")
    create_index("ix_dependencies_job", "dependencies", "job_id")


def create_ready() -> None:
    create_table(
        "ready",
        Column("placement", BigInteger, primary_key=True, autoincrement=False),
        Column("rank", Integer, primary_key=True, autoincrement=False),
        key("job_id"),
        key("task_id"),
        postgres=BUSY,
        with_rowid=False,
    )


def create_delayed() -> None:
    create_table(
        "delayed",
        Column("run_after", UtcTime, primary_key=True),
        key("task_id"),
        postgres=BUSY,
        with_rowid=False,
    )


def create_claims() -> None:
    create_table(
        "claims",
        key("worker_id"),
        key("task_id"),
        Column("epoch", Integer, nullable=False),
        postgres=BUSY,
        with_rowid=False,
    )


def create_ripples() -> None:
    create_table(
        "ripples",
        key("id"),
        Column("job_id", Id, nullable=False),
        Column("kind", String(20), nullable=False),
        Column("node_id", Id, nullable=False),
        Column("node_type", String(5), nullable=False),
        Column("after_id", Id, nullable=False, server_default=text("0")),
    )
    create_index("ix_ripples_job", "ripples", "job_id")


def create_runs() -> None:
    create_table(
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
    )


def create_events() -> None:
    create_table(
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
    )
    create_index("ix_events_job", "events", "job_id", "id")


def create_workers() -> None:
    create_table(
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
        postgres=HOT,
    )
    create_index("ix_workers_status", "workers", "status")


def create_registered_jobs() -> None:
    create_table(
        "registered_jobs",
        key("id"),
        Column("name", String(200), nullable=False),
        Column("entrypoint", String(500), nullable=False),
        flag("enabled", "true"),
        Column("schedule", String(200)),
        Column("default_kwargs", JsonText, nullable=False),
        Column("preservation_mode", String(10)),
        Column("next_run_at", UtcTime),
        Column("created_at", UtcTime, nullable=False),
        Column("updated_at", UtcTime, nullable=False),
    )
    create_index("ix_registered_jobs_name", "registered_jobs", "name", unique=True)
    create_index("ix_registered_jobs_due", "registered_jobs", "next_run_at")


def create_machine_ids() -> None:
    create_table(
        "machine_ids",
        Column("machine_id", Integer, primary_key=True, autoincrement=False),
        Column("high_water_ms", BigInteger, nullable=False),
    )


def key(name: str) -> Column[int]:
    return Column(name, Id, primary_key=True, autoincrement=False)


def count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text("0"))


def flag(name: str, default: str) -> Column[bool]:
    return Column(name, Boolean(create_constraint=False), nullable=False, server_default=text(default))


def create_table(
    name: str, *columns: SchemaItem, postgres: dict[str, float] | None = None, with_rowid: bool = True
) -> None:
    op.create_table(
        name,
        *columns,
        if_not_exists=must_be_repeatable(),
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_nopad_bin",
        mariadb_engine="InnoDB",
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_nopad_bin",
        postgresql_with=postgres or {},
        sqlite_with_rowid=with_rowid,
    )


def create_index(name: str, table: str, *columns: str, unique: bool = False) -> None:
    op.create_index(name, table, list(columns), unique=unique, if_not_exists=must_be_repeatable())


def must_be_repeatable() -> bool:
    """MariaDB commits at each statement; the others undo a step that was cut off."""
    return op.get_context().dialect.name in ("mysql", "mariadb")
