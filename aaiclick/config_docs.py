"""The table of settings: name, default, accepted values and meaning. The page of the manual is generated from it.

Regenerate the page with: python -m aaiclick.config_docs > docs/reference/settings.md
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

MONTH_S = 30 * 24 * 3600
YEARS_S = 10 * 365 * 24 * 3600

FIXED_MACHINE_IDS = range(512, 768)
"""Machine ids reserved for AAICLICK_MACHINE_ID; see aaiclick/ids.py for the others."""


@dataclass(frozen=True)
class Setting:
    """One environment variable: the field of `Settings` it sets, what it accepts and what it means."""

    name: str
    field: str
    default: str
    meaning: str
    accepts: str = ""
    low: float | None = None
    high: float | None = None
    whole: bool = True

    @property
    def rule(self) -> str:
        """The accepted values, in words."""
        if self.low is None or self.high is None:
            return self.accepts
        return f"a {'whole ' if self.whole else ''}number from {self.low:.15g} to {self.high:.15g}"


def _seconds(name: str, to: str, default: str, meaning: str, low: float = 1, high: float = MONTH_S) -> Setting:
    return Setting(name, to, default, meaning, low=low, high=high, whole=False)


def _age(name: str, to: str, default: str, meaning: str) -> Setting:
    return _seconds(name, to, default, f"{meaning} 0: never.", low=0, high=YEARS_S)


SETTINGS: tuple[Setting, ...] = (
    Setting("AAICLICK_LOCAL_ROOT", "local_root", "~/.aaiclick", "Base directory for all local state.", "a directory"),
    Setting(
        "AAICLICK_SQL_URL",
        "sql_url",
        "sqlite+aiosqlite:///{root}/local.db",
        "The database of the state: jobs, tasks, workers. It wins over POSTGRES_*.",
        "an address of SQLite, PostgreSQL or MariaDB",
    ),
    Setting(
        "AAICLICK_CH_URL",
        "ch_url",
        "chdb://{root}/chdb_data",
        "The database of the data: embedded chdb, or a ClickHouse server.",
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
        "Where the logs of tasks are written. Workers on several machines need a shared directory.",
        "a directory",
    ),
    Setting(
        "AAICLICK_DEFAULT_PRESERVATION_MODE",
        "default_preservation_mode",
        "NONE",
        "Whether the tables of a job go when nobody refers to them (NONE), or stay until the job expires (FULL).",
        "NONE or FULL, in either case",
    ),
    _seconds(
        "WORKER_HEARTBEAT_INTERVAL",
        "beat_every_s",
        "a third of the session",
        "Seconds between two heartbeats of a worker. At most half of the session.",
        low=0.05,
        high=3600,
    ),
    _seconds(
        "AAICLICK_SESSION_SECONDS",
        "session_s",
        "30, or three heartbeats if that is longer",
        "Seconds without a heartbeat after which a worker is taken for dead.",
        low=0.1,
        high=86400,
    ),
    _seconds("WORKER_TASK_TIMEOUT", "task_timeout_s", "no limit", "Seconds that one run of a task may take."),
    Setting(
        "WORKER_MAX_RETRIES",
        "retries_max",
        "0",
        "How often a failed task is tried again, unless the task says otherwise.",
        low=0,
        high=1000,
    ),
    Setting(
        "AAICLICK_CRASHES_MAX",
        "crashes_max",
        "3",
        "How often the process that runs a task may die before the task is given up.",
        low=1,
        high=1000,
    ),
    Setting(
        "AAICLICK_LOSSES_MAX",
        "losses_max",
        "10",
        "How often a task may lose its worker before it is given up.",
        low=1,
        high=1000,
    ),
    _seconds(
        "AAICLICK_SHUTDOWN_GRACE_SECONDS",
        "shutdown_grace_s",
        "30",
        "Seconds that a worker which is told to stop gives its tasks to end; then it gives them back.",
        low=0,
        high=86400,
    ),
    _seconds(
        "AAICLICK_CANCEL_GRACE_SECONDS",
        "cancel_grace_s",
        "3",
        "Seconds from asking a task to stop until its process is killed.",
        low=0,
        high=3600,
    ),
    Setting(
        "AAICLICK_CHILD_TASKS_MAX",
        "child_tasks_max",
        "1000",
        "Tasks that one child process runs before another takes its place.",
        low=1,
        high=1_000_000,
    ),
    Setting(
        "AAICLICK_CHILD_GROWTH_MB",
        "child_growth_mb",
        "512",
        "Megabytes by which a child process may grow before another takes its place.",
        low=1,
        high=1_000_000,
    ),
    Setting(
        "AAICLICK_LOG_BYTES_MAX",
        "log_bytes_max",
        "10000000",
        "Bytes that the log of one run may take; the middle of a longer one is left out.",
        low=1000,
        high=100_000_000_000,
    ),
    _seconds(
        "JOB_DEFAULT_TIMEOUT",
        "job_timeout_s",
        "no limit",
        "Seconds after its start at which a job that has not ended fails.",
    ),
    Setting(
        "AAICLICK_SQL_POOL_SIZE",
        "sql_pool_size",
        "20",
        "Connections to a database server that one process keeps open.",
        low=1,
        high=1000,
    ),
    Setting(
        "AAICLICK_SQL_MAX_OVERFLOW",
        "sql_max_overflow",
        "40",
        "Connections that it may open beyond those for a moment.",
        low=0,
        high=1000,
    ),
    Setting(
        "AAICLICK_VALUE_BYTES_MAX",
        "value_bytes_max",
        "1000000",
        "Bytes that the arguments or the result of one task may take in the state; larger ones lie beside its tables.",
        low=1000,
        high=100_000_000,
    ),
    Setting(
        "AAICLICK_BLOB_BYTES_MAX",
        "blob_bytes_max",
        "100000000",
        "Bytes that the arguments or the result of one task may take at all; for larger data, use an Object.",
        low=1000,
        high=1_000_000_000,
    ),
    Setting(
        "AAICLICK_TASK_CHILDREN_MAX",
        "task_children_max",
        "200000",
        "Tasks and groups that one run of a task may make.",
        low=1,
        high=10_000_000,
    ),
    Setting(
        "AAICLICK_JOB_TASKS_MAX",
        "job_tasks_max",
        "2000000",
        "Tasks that one job may have.",
        low=1,
        high=100_000_000,
    ),
    Setting(
        "AAICLICK_MACHINE_ID",
        "machine_id",
        "allotted by the database",
        "A fixed machine id for the ids made here. Give it to one process at a time.",
        low=FIXED_MACHINE_IDS[0],
        high=FIXED_MACHINE_IDS[-1],
    ),
    _seconds(
        "AAICLICK_JOB_TTL",
        "job_ttl_s",
        "604800",
        "Seconds after a job's end at which its tables go: results, inputs of what failed, all of a job with FULL.",
        high=YEARS_S,
    ),
    _seconds(
        "AAICLICK_EVENT_TTL",
        "event_ttl_s",
        "2592000",
        "Seconds after which events go, the newest excepted; jobs, tasks, runs and metrics stay.",
        low=3600,
        high=YEARS_S,
    ),
    _age(
        "AAICLICK_HISTORY_TTL",
        "history_ttl_s",
        "7776000",
        "Seconds after a job's end at which it goes, with its tasks, runs, logs, tables and key; metrics stay.",
    ),
    _age(
        "AAICLICK_LOG_TTL",
        "log_ttl_s",
        "2592000",
        "Seconds after the last write at which logs of runs that have ended go, on each worker's own machine.",
    ),
    _age(
        "AAICLICK_FIRE_TTL",
        "fire_ttl_s",
        "31536000",
        "Seconds after which it is forgotten what became of a schedule's times, and which backfills there were.",
    ),
    _age("AAICLICK_WORKER_TTL", "worker_ttl_s", "2592000", "Seconds after which workers that stopped are forgotten."),
    _age("AAICLICK_AUDIT_TTL", "audit_ttl_s", "31536000", "Seconds after which entries of the audit go."),
    _seconds(
        "AAICLICK_SWEEP_AGE",
        "sweep_age_s",
        "3600",
        "Seconds after which a table that nobody knows, or nothing ever referred to, is dropped.",
        high=YEARS_S,
    ),
    Setting(
        "AAICLICK_ENGINE_MEMORY_MB",
        "engine_memory_mb",
        "0",
        "Megabytes that the embedded data engine may take for all queries together; 0: half of the machine's.",
        low=0,
        high=100_000_000,
    ),
    Setting(
        "AAICLICK_GATEWAY_PORT",
        "gateway_port",
        "0",
        "A port of this machine where the embedded data engine is served to other programs too; 0: on a socket of this"
        " user alone.",
        low=0,
        high=65535,
    ),
    Setting(
        "AAICLICK_GATEWAY_FILES",
        "gateway_files",
        "0",
        "1: programs that use that port may reach files and addresses too, as `file` and `url` do, as this user.",
        low=0,
        high=1,
    ),
    Setting(
        "AAICLICK_OPLOG",
        "oplog",
        "0",
        "1: every operation on Objects is noted, for lineage().",
        low=0,
        high=1,
    ),
    Setting(
        "AAICLICK_NAN_TO_NULL",
        "nan_to_null",
        "1",
        "0: NaN of pandas stays NaN where values become Objects, unless the call says otherwise.",
        low=0,
        high=1,
    ),
    Setting(
        "AAICLICK_ENTRYPOINT_PREFIXES",
        "entrypoint_prefixes",
        "none: nothing new can be run through the server",
        "Packages, modules and single functions whose tasks and jobs may be run and registered through the server.",
        "importable names, separated by commas",
    ),
    Setting(
        "AAICLICK_SERVER_HOSTS",
        "server_hosts",
        "localhost, 127.0.0.1 and ::1",
        "More names by which the server may be asked, as browsers write them: others are refused (DNS rebinding).",
        "host names, each with a port or without, separated by commas",
    ),
    Setting(
        "AAICLICK_MCP_WRITE",
        "mcp_write",
        "0",
        "1: agents that ask at /mcp get tools that change something too, as far as their tokens' roles allow.",
        low=0,
        high=1,
    ),
    Setting(
        "AAICLICK_LOG_FORMAT",
        "log_format",
        "text",
        "How our processes write their log: text for people, or one JSON object a line. Also what tasks log.",
        "text or json, in either case",
    ),
    Setting(
        "AAICLICK_LOG_LEVEL",
        "log_level",
        "WARNING",
        "From which level on our processes write their own log to stderr; --verbose means at least INFO.",
        "DEBUG, INFO, WARNING or ERROR, in either case",
    ),
    Setting(
        "AAICLICK_OTEL",
        "otel",
        "0",
        "1: spans of OpenTelemetry are sent (extra otel), to where the standard OTEL_* variables say.",
        low=0,
        high=1,
    ),
    Setting(
        "POSTGRES_HOST",
        "sql_url",
        "not used",
        "A PostgreSQL server for the state, if AAICLICK_SQL_URL is not set. The other POSTGRES_* count only with it.",
        "a host name, an IP address, or the directory of a socket",
    ),
    Setting("POSTGRES_PORT", "sql_url", "5432", "Its port.", low=1, high=65535),
    Setting("POSTGRES_USER", "sql_url", "aaiclick", "Its user.", "a name"),
    Setting("POSTGRES_PASSWORD", "sql_url", "none", "The user's password. It is shown nowhere.", "any text"),
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
    "aaiclick reads its settings from environment variables, once, when the first of them is needed. All of them are",
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
