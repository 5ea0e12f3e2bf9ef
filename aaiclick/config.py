"""The settings: read once from the environment, checked together, as one frozen object. Their table: config_docs.py."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar
from urllib.parse import quote

from aaiclick.config_docs import BY_NAME
from aaiclick.config_setting import Setting
from aaiclick.config_values import (
    PreservationMode,
    read_absolute,
    read_addresses,
    read_amounts,
    read_host,
    read_hosts,
    read_identifiers,
    read_label,
    read_labels,
    read_log_store,
    read_not_empty,
    read_number,
    read_one_of,
    read_pairs,
    read_plain,
    read_prefixes,
    read_preservation_mode,
    read_quoted,
    read_redis,
    read_redis_prefix,
    read_server,
    read_servers,
    read_web_address,
)
from aaiclick.errors import ConfigError, ConfigErrors
from aaiclick.urls import Place, did_you_mean, mask_url, read_ch_url, read_sql_url, shown, sqlite_file, sqlite_url
from aaiclick.urls import read_cluster as cluster_name

__all__ = ["PreservationMode", "Settings", "mask_url", "reset_settings", "settings"]

LogFormat = Literal["text", "json"]

LOG_LEVELS = ("debug", "info", "warning", "error")
OUR_PREFIX = "AAICLICK_"
SESSION_S, BEATS_PER_SESSION = 30.0, 3
LOGS = Path("/var/log/aaiclick")

T = TypeVar("T")


@dataclass(frozen=True)
class Settings:
    """The checked values of all settings; config_docs.py says what each means."""

    local_root: Path
    sql_url: str = field(repr=False)
    api_url: str
    coordinator_urls: tuple[str, ...]
    api_token: str = field(repr=False)
    api_cert: Path | None
    ch_url: str = field(repr=False)
    node_ch_url: str = field(repr=False)
    ch_cluster: str
    log_dir: Path
    log_store: str
    default_preservation_mode: PreservationMode
    beat_every_s: float
    session_s: float
    task_timeout_s: float | None
    retries_max: int
    job_timeout_s: float | None
    crashes_max: int
    losses_max: int
    shutdown_grace_s: float
    cancel_grace_s: float
    child_tasks_max: int
    child_growth_mb: int
    log_bytes_max: int
    log_spool_mb: int
    sql_pool_size: int
    sql_max_overflow: int
    value_bytes_max: int
    blob_bytes_max: int
    task_children_max: int
    job_tasks_max: int
    machine_id: int | None
    job_ttl_s: float
    cache_ttl_s: float | None
    event_ttl_s: float
    history_ttl_s: float | None
    log_ttl_s: float | None
    fire_ttl_s: float | None
    worker_ttl_s: float | None
    audit_ttl_s: float | None
    sweep_age_s: float
    engine_memory_mb: int
    gateway_port: int
    gateway_files: bool
    oplog: bool
    nan_to_null: bool
    entrypoint_prefixes: tuple[str, ...]
    executors: tuple[str, ...]
    resources: tuple[tuple[str, float], ...]
    node_name: str | None
    node_pool: str | None
    node_labels: tuple[str, ...]
    node_capabilities: tuple[str, ...]
    rest_allow: tuple[str, ...]
    server_url: str
    server_hosts: tuple[str, ...]
    mcp_write: bool
    log_format: LogFormat
    log_level: str
    otel: bool
    redis_url: str = field(repr=False)
    redis_prefix: str
    redis_ingest: bool
    claim_idle_ms: int

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Settings:
        """Read and check all settings; raise one ConfigError that names everything wrong."""
        reader = _Reader(env)
        found = _settings(reader)
        reader.refuse_what_is_wrong()
        return found

    @property
    def sqlite_file(self) -> Path | None:
        """The SQLite file of the state, or None if the state is on a server."""
        return sqlite_file(self.sql_url)

    @property
    def is_chdb(self) -> bool:
        """Whether the data is stored in the embedded chdb."""
        return self.ch_url.startswith("chdb://")

    @property
    def is_sqlite(self) -> bool:
        """Whether the state is stored in a SQLite file."""
        return self.sql_url.startswith("sqlite")

    @property
    def is_local(self) -> bool:
        """Whether neither database is a server."""
        return self.is_chdb and self.is_sqlite


_current: Settings | None = None


def settings() -> Settings:
    """Return the settings of this process, read from the environment at the first call."""
    global _current
    if _current is None:
        _current = found = Settings.from_env(os.environ)
        _warn_about_unknown(os.environ)  # last: a handler of the warning may call settings()
        return found
    return _current


def reset_settings() -> None:
    """Make the next call of `settings` read the environment again."""
    global _current
    _current = None


class _Reader:
    """Reads variables one by one and collects the errors; a wrong value counts as unset until the end."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env
        self.wrong: list[ConfigError] = []

    def take(self, name: str, read: Callable[[Setting, str], T]) -> T | None:
        """Return the variable's value as `read` converts it; None if it is unset or wrong."""
        return self.attempt(lambda: read(BY_NAME[name], read_plain(name, self.env[name]))) if name in self.env else None

    def attempt(self, read: Callable[[], T]) -> T | None:
        """Return what `read` returns; if it raises ConfigError, note the error and return None."""
        try:
            return read()
        except ConfigError as error:
            self.wrong.append(error)
            return None

    def number(self, name: str) -> float | None:
        """Return a number within the setting's range; None if it is unset or wrong."""
        return self.take(name, read_number)

    def whole(self, name: str) -> int:
        """Return a whole number, or the setting's default."""
        found = self.number(name)
        return int(BY_NAME[name].default if found is None else found)

    def seconds(self, name: str) -> float:
        """Return a number of seconds, or the setting's default."""
        found = self.number(name)
        return float(BY_NAME[name].default if found is None else found)

    def text(self, name: str) -> str:
        """Return a text that is not empty, or the setting's default."""
        return self.take(name, read_not_empty) or BY_NAME[name].default

    def address(self, name: str, read: Callable[[str, str, Place], str]) -> str | None:
        return self.take(name, lambda setting, text: read(name, text, functools.partial(self.place, setting)))

    def place(self, setting: Setting, text: str) -> Path:
        """Return an absolute path; a leading `~` is replaced by HOME."""
        return read_absolute(setting, read_not_empty(setting, text), self.env)

    def refuse_what_is_wrong(self) -> None:
        """Raise one error for all collected errors, if there are any."""
        if len(self.wrong) == 1:
            raise self.wrong[0]
        if self.wrong:
            each = "".join(f"\n{error}" for error in self.wrong)
            raise ConfigErrors(count=len(self.wrong), each=each, errors=tuple(self.wrong))


def _settings(reader: _Reader) -> Settings:
    root, sql_url, ch_url = _stores(reader)
    return Settings(
        local_root=root,
        sql_url=sql_url,
        api_url=reader.take("AAICLICK_API_URL", read_server) or "",
        coordinator_urls=reader.take("AAICLICK_COORDINATOR_URL", read_servers) or (),
        api_token=reader.take("AAICLICK_API_TOKEN", read_not_empty) or "",
        api_cert=reader.take("AAICLICK_API_CERT", reader.place),
        ch_url=ch_url,
        node_ch_url=reader.address("AAICLICK_NODE_CH_URL", read_ch_url) or "",
        ch_cluster=reader.take("AAICLICK_CH_CLUSTER", lambda each, text: cluster_name(each.name, text, ch_url)) or "",
        log_dir=_log_dir(reader, root, local=sql_url.startswith("sqlite") and ch_url.startswith("chdb:")),
        log_store=reader.take("AAICLICK_LOG_STORE", lambda each, text: read_log_store(each, text, reader.env)) or "",
        default_preservation_mode=reader.take("AAICLICK_DEFAULT_PRESERVATION_MODE", read_preservation_mode) or "none",
        **_beat_and_session(reader),
        task_timeout_s=reader.number("WORKER_TASK_TIMEOUT"),
        retries_max=reader.whole("WORKER_MAX_RETRIES"),
        job_timeout_s=reader.number("JOB_DEFAULT_TIMEOUT"),
        crashes_max=reader.whole("AAICLICK_CRASHES_MAX"),
        losses_max=reader.whole("AAICLICK_LOSSES_MAX"),
        shutdown_grace_s=reader.seconds("AAICLICK_SHUTDOWN_GRACE_SECONDS"),
        cancel_grace_s=reader.seconds("AAICLICK_CANCEL_GRACE_SECONDS"),
        child_tasks_max=reader.whole("AAICLICK_CHILD_TASKS_MAX"),
        child_growth_mb=reader.whole("AAICLICK_CHILD_GROWTH_MB"),
        log_bytes_max=reader.whole("AAICLICK_LOG_BYTES_MAX"),
        log_spool_mb=reader.whole("AAICLICK_LOG_SPOOL_MB"),
        sql_pool_size=reader.whole("AAICLICK_SQL_POOL_SIZE"),
        sql_max_overflow=reader.whole("AAICLICK_SQL_MAX_OVERFLOW"),
        value_bytes_max=reader.whole("AAICLICK_VALUE_BYTES_MAX"),
        blob_bytes_max=reader.whole("AAICLICK_BLOB_BYTES_MAX"),
        task_children_max=reader.whole("AAICLICK_TASK_CHILDREN_MAX"),
        job_tasks_max=reader.whole("AAICLICK_JOB_TASKS_MAX"),
        machine_id=reader.take("AAICLICK_MACHINE_ID", lambda each, text: int(read_number(each, text))),
        job_ttl_s=reader.seconds("AAICLICK_JOB_TTL"),
        cache_ttl_s=reader.seconds("AAICLICK_CACHE_TTL") or None,
        event_ttl_s=reader.seconds("AAICLICK_EVENT_TTL"),
        history_ttl_s=reader.seconds("AAICLICK_HISTORY_TTL") or None,
        log_ttl_s=reader.seconds("AAICLICK_LOG_TTL") or None,
        fire_ttl_s=reader.seconds("AAICLICK_FIRE_TTL") or None,
        worker_ttl_s=reader.seconds("AAICLICK_WORKER_TTL") or None,
        audit_ttl_s=reader.seconds("AAICLICK_AUDIT_TTL") or None,
        sweep_age_s=reader.seconds("AAICLICK_SWEEP_AGE"),
        engine_memory_mb=reader.whole("AAICLICK_ENGINE_MEMORY_MB"),
        gateway_port=reader.whole("AAICLICK_GATEWAY_PORT"),
        gateway_files=bool(reader.whole("AAICLICK_GATEWAY_FILES")),
        oplog=bool(reader.whole("AAICLICK_OPLOG")),
        nan_to_null=bool(reader.whole("AAICLICK_NAN_TO_NULL")),
        entrypoint_prefixes=reader.take("AAICLICK_ENTRYPOINT_PREFIXES", read_prefixes) or (),
        **_of_this_node(reader),
        rest_allow=reader.take("AAICLICK_REST_ALLOW", read_addresses) or (),
        mcp_write=bool(reader.whole("AAICLICK_MCP_WRITE")),
        log_format="json" if reader.take("AAICLICK_LOG_FORMAT", read_one_of("text", "json")) == "json" else "text",
        log_level=(reader.take("AAICLICK_LOG_LEVEL", read_one_of(*LOG_LEVELS)) or "warning").upper(),
        otel=bool(reader.whole("AAICLICK_OTEL")),
        **_servers(reader),
    )


class _Servers(TypedDict):
    server_url: str
    server_hosts: tuple[str, ...]
    redis_url: str
    redis_prefix: str
    redis_ingest: bool
    claim_idle_ms: int


def _servers(reader: _Reader) -> _Servers:
    """Return what is set for our server, and for the Redis beside it."""
    return _Servers(
        server_url=reader.take("AAICLICK_SERVER_URL", read_web_address) or "",
        server_hosts=reader.take("AAICLICK_SERVER_HOSTS", read_hosts) or (),
        redis_url=reader.take("AAICLICK_REDIS_URL", read_redis) or "",
        redis_prefix=reader.take("AAICLICK_REDIS_PREFIX", read_redis_prefix) or "stream:orchestrator:",
        redis_ingest=_redis_ingest(reader),
        claim_idle_ms=reader.whole("ORCH_CLAIM_IDLE_MS"),
    )


def _redis_ingest(reader: _Reader) -> bool:
    wanted = bool(reader.whole("AAICLICK_REDIS_INGEST"))
    if wanted and not reader.env.get("AAICLICK_REDIS_URL"):
        rule, hint = "there is no Redis to read from", "Set AAICLICK_REDIS_URL too, or unset it."
        reader.wrong.append(ConfigError(setting="AAICLICK_REDIS_INGEST", value="1", rule=rule, hint=hint))
    return wanted


def _of_this_node(reader: _Reader) -> dict[str, Any]:
    """Return what this machine is, and what it offers."""
    return {
        "executors": reader.take("AAICLICK_EXECUTORS", read_identifiers) or (),
        "resources": reader.take("AAICLICK_RESOURCES", read_amounts) or (),
        "node_name": reader.take("AAICLICK_NODE_NAME", read_label),
        "node_pool": reader.take("AAICLICK_NODE_POOL", read_label),
        "node_labels": reader.take("AAICLICK_NODE_LABELS", read_labels) or (),
        "node_capabilities": reader.take("AAICLICK_NODE_CAPABILITIES", read_pairs) or (),
    }


def _stores(reader: _Reader) -> tuple[Path, str, str]:
    """Return the local root, and the URLs of the state and of the data, which by default are below it."""
    root = _local_root(reader)
    return root, _sql_url(reader, root), _ch_url(reader, root)


def _local_root(reader: _Reader) -> Path:
    setting = BY_NAME["AAICLICK_LOCAL_ROOT"]
    given = reader.env.get(setting.name, setting.default)
    return reader.attempt(lambda: reader.place(setting, read_plain(setting.name, given))) or Path("/")


def _sql_url(reader: _Reader, root: Path) -> str:
    found = None
    if "AAICLICK_SQL_URL" in reader.env:
        found = reader.address("AAICLICK_SQL_URL", read_sql_url)
    elif reader.env.get("POSTGRES_HOST"):
        found = _postgres_url(reader)
    return found or sqlite_url(root / "local.db")


def _postgres_url(reader: _Reader) -> str:
    """Return the URL that the POSTGRES_* variables describe."""
    user, password = quote(reader.text("POSTGRES_USER"), safe=""), reader.env.get("POSTGRES_PASSWORD", "")
    host, port = reader.take("POSTGRES_HOST", read_host) or "", reader.whole("POSTGRES_PORT")
    login = f"{user}:{reader.take('POSTGRES_PASSWORD', read_quoted)}" if password else user
    database = quote(reader.text("POSTGRES_DB"), safe="")
    if host.startswith("/"):
        return f"postgresql+asyncpg://{login}@/{database}?host={quote(host)}&port={port}"
    return f"postgresql+asyncpg://{login}@{host}:{port}/{database}"


def _ch_url(reader: _Reader, root: Path) -> str:
    given = reader.address("AAICLICK_CH_URL", read_ch_url)
    elsewhere = "coordinator://servers" if "AAICLICK_COORDINATOR_URL" in reader.env else ""
    return given or elsewhere or f"chdb://{root / 'chdb_data'}"


def _log_dir(reader: _Reader, root: Path, *, local: bool) -> Path:
    setting = BY_NAME["AAICLICK_LOG_DIR"]
    if setting.name in reader.env:
        return reader.take(setting.name, reader.place) or root
    if local:
        return root / "logs"
    if sys.platform == "darwin":
        return reader.attempt(lambda: reader.place(setting, "~/.aaiclick/logs")) or root
    if os.access(LOGS if LOGS.exists() else LOGS.parent, os.W_OK | os.X_OK):
        return LOGS
    return reader.attempt(lambda: reader.place(setting, "~/.local/state/aaiclick/logs")) or root


def _beat_and_session(reader: _Reader) -> dict[str, Any]:
    """Return the heartbeat interval and the session's length in seconds; an unset one follows from the other."""
    beat, session = reader.number("WORKER_HEARTBEAT_INTERVAL"), reader.number("AAICLICK_SESSION_SECONDS")
    if session is None:
        session = max(SESSION_S, BEATS_PER_SESSION * (beat or 0))
    beat = session / BEATS_PER_SESSION if beat is None else beat
    if beat > session / 2:
        rule = f"it must be at most half of the session, which lives {session:g} s"
        hint = "Beat more often, or raise AAICLICK_SESSION_SECONDS."
        reader.wrong.append(ConfigError(setting="WORKER_HEARTBEAT_INTERVAL", value=f"{beat:g}", rule=rule, hint=hint))
    return {"beat_every_s": beat, "session_s": session}


def _warn_about_unknown(env: Mapping[str, str]) -> None:
    unknown = sorted(name for name in env if name.startswith(OUR_PREFIX) and name not in BY_NAME)
    if not unknown:
        return
    import logging  # takes longer to import than the settings to read, and is rarely needed

    known = [name.removeprefix(OUR_PREFIX) for name in BY_NAME if name.startswith(OUR_PREFIX)]
    for name in unknown:
        nearest = did_you_mean(name.removeprefix(OUR_PREFIX).upper(), known, prefix=OUR_PREFIX)
        logging.getLogger(__name__).warning("%s is not a setting and is ignored. %s", shown(name), nearest)
