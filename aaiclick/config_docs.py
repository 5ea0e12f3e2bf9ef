"""The table of settings: name, default, accepted values and meaning. The page of the manual is generated from it.

Regenerate the page with: python -m aaiclick.config_docs > docs/reference/settings.md
"""

from __future__ import annotations

import sys

from aaiclick.config_fleet import FLEET
from aaiclick.config_setting import YEARS_S, Setting, age, seconds, whole

FIXED_MACHINE_IDS = range(512, 768)
"""Machine ids reserved for AAICLICK_MACHINE_ID; see aaiclick/ids.py for the others."""

SETTINGS: tuple[Setting, ...] = (
    Setting("AAICLICK_LOCAL_ROOT", "local_root", "~/.aaiclick", "Base directory for all local state.", "a directory"),
    Setting(
        "AAICLICK_SQL_URL",
        "sql_url",
        "sqlite+aiosqlite:///{root}/local.db",
        "The database that stores jobs, tasks and workers. It takes precedence over POSTGRES_*.",
        "an address of SQLite, PostgreSQL or MariaDB",
    ),
    Setting(
        "AAICLICK_CH_URL",
        "ch_url",
        "chdb://{root}/chdb_data; with AAICLICK_COORDINATOR_URL through the server",
        "The database that stores Objects: embedded chdb, or a ClickHouse server.",
        "chdb://directory or clickhouse://user:password@host:port/database; several hosts with commas",
    ),
    Setting(
        "AAICLICK_CH_CLUSTER",
        "ch_cluster",
        "none",
        "The cluster of the server in AAICLICK_CH_URL on whose machines tables are made; see the guide on databases.",
        "a cluster's name: letters, digits, _ . -",
    ),
    Setting(
        "AAICLICK_LOG_DIR",
        "log_dir",
        "local: {root}/logs; else /var/log/aaiclick if this user may write there, or ~/.local/state/aaiclick/logs; "
        "on macOS ~/.aaiclick/logs",
        "Where the logs of tasks are written.",
        "a directory",
    ),
    Setting(
        "AAICLICK_DEFAULT_PRESERVATION_MODE",
        "default_preservation_mode",
        "NONE",
        "Whether tables of a job are dropped when nothing refers to them (NONE), or kept until the job expires (FULL).",
        "NONE or FULL, in either case",
    ),
    seconds(
        "WORKER_HEARTBEAT_INTERVAL",
        "beat_every_s",
        "a third of the session",
        "Seconds between two heartbeats of a worker. At most half of the session.",
        low=0.05,
        high=3600,
    ),
    seconds(
        "AAICLICK_SESSION_SECONDS",
        "session_s",
        "30, or three heartbeats if that is longer",
        "Seconds without a heartbeat after which a worker counts as dead.",
        low=0.1,
        high=86400,
    ),
    seconds("WORKER_TASK_TIMEOUT", "task_timeout_s", "no limit", "Seconds that one run of a task may take."),
    whole(
        "WORKER_MAX_RETRIES",
        "retries_max",
        "0",
        "How often a failed task is tried again, unless the task says otherwise.",
        (0, 1000),
    ),
    whole(
        "AAICLICK_CRASHES_MAX",
        "crashes_max",
        "3",
        "How often the process that runs a task may die before the task is given up.",
        (1, 1000),
    ),
    whole(
        "AAICLICK_LOSSES_MAX",
        "losses_max",
        "10",
        "How often a task may lose its worker before it is given up.",
        (1, 1000),
    ),
    seconds(
        "AAICLICK_SHUTDOWN_GRACE_SECONDS",
        "shutdown_grace_s",
        "30",
        "Seconds that a stopping worker waits for its tasks to end; then it gives them back.",
        low=0,
        high=86400,
    ),
    seconds(
        "AAICLICK_CANCEL_GRACE_SECONDS",
        "cancel_grace_s",
        "3",
        "Seconds from asking a task to stop until its process is killed.",
        low=0,
        high=3600,
    ),
    whole(
        "AAICLICK_CHILD_TASKS_MAX",
        "child_tasks_max",
        "1000",
        "Tasks that one child process runs before another takes its place.",
        (1, 1_000_000),
    ),
    whole(
        "AAICLICK_CHILD_GROWTH_MB",
        "child_growth_mb",
        "512",
        "Megabytes by which a child process may grow before another takes its place.",
        (1, 1_000_000),
    ),
    whole(
        "AAICLICK_LOG_BYTES_MAX",
        "log_bytes_max",
        "10000000",
        "Bytes that the log of one run may take; the middle of a longer one is left out.",
        (1000, 100_000_000_000),
    ),
    seconds(
        "JOB_DEFAULT_TIMEOUT",
        "job_timeout_s",
        "no limit",
        "Seconds after its start at which a job that has not ended fails.",
    ),
    whole(
        "AAICLICK_SQL_POOL_SIZE",
        "sql_pool_size",
        "20",
        "Connections to a database server that one process keeps open.",
        (1, 1000),
    ),
    whole(
        "AAICLICK_SQL_MAX_OVERFLOW",
        "sql_max_overflow",
        "40",
        "Additional connections that the process may open for a short time.",
        (0, 1000),
    ),
    whole(
        "AAICLICK_VALUE_BYTES_MAX",
        "value_bytes_max",
        "1000000",
        "Bytes that arguments or the result of one task may take in the state; larger ones are kept beside its tables.",
        (1000, 100_000_000),
    ),
    whole(
        "AAICLICK_BLOB_BYTES_MAX",
        "blob_bytes_max",
        "100000000",
        "Bytes that the arguments or the result of one task may take at all; for larger data, use an Object.",
        (1000, 1_000_000_000),
    ),
    whole(
        "AAICLICK_TASK_CHILDREN_MAX",
        "task_children_max",
        "200000",
        "Tasks and groups that one run of a task may make.",
        (1, 10_000_000),
    ),
    whole(
        "AAICLICK_JOB_TASKS_MAX",
        "job_tasks_max",
        "2000000",
        "Tasks that one job may have.",
        (1, 100_000_000),
    ),
    whole(
        "AAICLICK_MACHINE_ID",
        "machine_id",
        "allotted by the database",
        "A fixed machine id for the ids made here. Give it to one process at a time.",
        (FIXED_MACHINE_IDS[0], FIXED_MACHINE_IDS[-1]),
    ),
    seconds(
        "AAICLICK_JOB_TTL",
        "job_ttl_s",
        "604800",
        "Seconds after a job's end until its tables are dropped: results, inputs of failed tasks, with FULL all.",
        high=YEARS_S,
    ),
    age("AAICLICK_CACHE_TTL", "cache_ttl_s", "2592000", "Seconds after which cached results without a `ttl` go."),
    seconds(
        "AAICLICK_EVENT_TTL",
        "event_ttl_s",
        "2592000",
        "Seconds after which events are deleted, except the newest; jobs, tasks, runs and metrics stay.",
        low=3600,
        high=YEARS_S,
    ),
    age(
        "AAICLICK_HISTORY_TTL",
        "history_ttl_s",
        "7776000",
        "Seconds after a job's end until it is deleted, with its tasks, runs, logs, tables and key; metrics stay.",
    ),
    age(
        "AAICLICK_LOG_TTL",
        "log_ttl_s",
        "2592000",
        "Seconds after the last write until logs of ended runs are deleted, on each worker's own machine.",
    ),
    age(
        "AAICLICK_FIRE_TTL",
        "fire_ttl_s",
        "31536000",
        "Seconds after which the history of a schedule's times and of backfills is deleted.",
    ),
    age("AAICLICK_WORKER_TTL", "worker_ttl_s", "2592000", "Seconds after which stopped workers are deleted."),
    age("AAICLICK_AUDIT_TTL", "audit_ttl_s", "31536000", "Seconds after which entries of the audit log are deleted."),
    seconds(
        "AAICLICK_SWEEP_AGE",
        "sweep_age_s",
        "3600",
        "Seconds after which a table that is unknown, or that nothing ever referred to, is dropped.",
        high=YEARS_S,
    ),
    whole(
        "AAICLICK_ENGINE_MEMORY_MB",
        "engine_memory_mb",
        "0",
        "Megabytes that the embedded data engine may take for all queries together; 0: half of the machine's memory.",
        (0, 100_000_000),
    ),
    whole(
        "AAICLICK_GATEWAY_PORT",
        "gateway_port",
        "0",
        "A port of this machine on which the embedded data engine is also served to other programs; "
        "0: only on a socket of this user.",
        (0, 65535),
    ),
    whole(
        "AAICLICK_GATEWAY_FILES",
        "gateway_files",
        "0",
        "1: programs that use that port may also reach files and addresses, as `file` and `url` do, as this user.",
        (0, 1),
    ),
    whole(
        "AAICLICK_OPLOG",
        "oplog",
        "0",
        "1: every operation on Objects is recorded, for lineage().",
        (0, 1),
    ),
    whole(
        "AAICLICK_NAN_TO_NULL",
        "nan_to_null",
        "1",
        "0: NaN of pandas stays NaN where values become Objects, unless the call says otherwise.",
        (0, 1),
    ),
    whole(
        "AAICLICK_MCP_WRITE",
        "mcp_write",
        "0",
        "1: agents at /mcp also get tools that change something, as far as their tokens' roles allow.",
        (0, 1),
    ),
    Setting(
        "AAICLICK_LOG_FORMAT",
        "log_format",
        "text",
        "The format of the log of all processes and of what tasks log: text for people, or one JSON object per line.",
        "text or json, in either case",
    ),
    Setting(
        "AAICLICK_LOG_LEVEL",
        "log_level",
        "WARNING",
        "The lowest level that processes log to stderr; --verbose means at least INFO.",
        "DEBUG, INFO, WARNING or ERROR, in either case",
    ),
    whole(
        "AAICLICK_OTEL",
        "otel",
        "0",
        "1: OpenTelemetry spans are sent (extra otel), as the standard OTEL_* variables configure.",
        (0, 1),
    ),
    *FLEET,
    Setting(
        "POSTGRES_HOST",
        "sql_url",
        "not used",
        "A PostgreSQL server for the state, if AAICLICK_SQL_URL is not set. Other POSTGRES_* are used only with it.",
        "a host name, an IP address, or the directory of a socket",
    ),
    Setting("POSTGRES_PORT", "sql_url", "5432", "Its port.", low=1, high=65535),
    Setting("POSTGRES_USER", "sql_url", "aaiclick", "Its user.", "a name"),
    Setting("POSTGRES_PASSWORD", "sql_url", "none", "The user's password. It is never shown.", "any text"),
    Setting("POSTGRES_DB", "sql_url", "aaiclick_orchestration", "Its database.", "a name"),
)


BY_NAME = {setting.name: setting for setting in SETTINGS}


def settings_markdown() -> str:
    """Return the text of docs/reference/settings.md."""
    rows = [f"| `{each.name}` | {each.default} | {each.rule} | {each.meaning} |" for each in SETTINGS]
    return "\n".join([*_PAGE_HEAD, *rows, *_PAGE_FOOT, ""])


_PAGE_HEAD = (
    "# Settings",
    "",
    "aaiclick reads its settings from environment variables, once, when the first one is needed. All of them are",
    "checked together: one error names every wrong one, with what it accepts. A variable that begins with `AAICLICK_`",
    "and is not listed here is ignored with a warning.",
    "",
    "`{root}` stands for the value of `AAICLICK_LOCAL_ROOT`, `~` for the home directory. Numbers are written in plain",
    "digits, without sign or exponent. Times are in seconds.",
    "",
    "| variable | default | accepts | meaning |",
    "|---|---|---|---|",
)
_PAGE_FOOT = (
    "",
    "Addresses that begin with `sqlite`, `postgresql`, `postgres`, `mariadb` or `mysql` are completed with their",
    "driver (`aiosqlite`, `asyncpg`, `asyncmy`); other drivers are refused. Special characters of a password are",
    "written as `%XX` (`@` is `%40`, `/` is `%2F`).",
)


if __name__ == "__main__":
    sys.stdout.write(settings_markdown())
