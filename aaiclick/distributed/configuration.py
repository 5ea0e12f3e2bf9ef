"""What a task manager is made of: where the state is stored, and how it takes part in a fleet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from aaiclick.errors import InputError
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.validation import check_name, check_seconds, shorten
from aaiclick.urls import SQL_DRIVERS


@dataclass(frozen=True)
class SQLiteStorage:
    """The state in a file, for the processes of one machine."""

    path: str | Path

    @property
    def url(self) -> str:
        return f"sqlite+aiosqlite:///{Path(self.path).absolute()}"


@dataclass(frozen=True)
class PostgreSQLStorage:
    """The state on a PostgreSQL server."""

    url: str

    def __post_init__(self) -> None:
        scheme, _, rest = self.url.partition("://")
        kind = scheme.partition("+")[0]
        if kind not in ("postgresql", "postgres") or not rest:
            rule = "it must be the address of a PostgreSQL server"
            hint = "For example postgresql://user:password@host:5432/database."
            raise InputError(field="PostgreSQLStorage.url", value=shorten(self.url), rule=rule, hint=hint)
        object.__setattr__(self, "url", f"postgresql+{SQL_DRIVERS['postgresql']}://{rest}")


class DuckDBStorage:
    """DuckDB is not supported: the constructor raises InputError."""

    def __init__(self, path: str | Path) -> None:
        rule = "the state is not stored in DuckDB"
        raise InputError(field="DuckDBStorage", value=shorten(str(path)), rule=rule, hint="Use SQLiteStorage(path).")


Storage = SQLiteStorage | PostgreSQLStorage


@dataclass(frozen=True)
class DistributedConfig:
    """How a process takes part in a fleet: as a coordinator, which repairs, or as a worker, which runs tasks.

    `heartbeat_timeout_seconds` and `lease_duration_seconds` both are the length of a session: the larger counts.
    `cleanup_interval_seconds` is how often `serve` looks for sessions that are over. With `coordinator_url`, the
    storage is not opened.
    """

    mode: Literal["coordinator", "worker"] = "coordinator"
    node_id: str | None = None
    heartbeat_timeout_seconds: float = 30
    lease_duration_seconds: float = 30
    cleanup_interval_seconds: float = 10
    coordinator_url: str | None = None
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    executor_types: Sequence[str] = ()
    poll_interval_seconds: float = 5

    def __post_init__(self) -> None:
        if self.mode not in ("coordinator", "worker"):
            raise InputError(field="mode", value=shorten(self.mode), rule='"coordinator" or "worker"', hint="")
        if self.node_id is not None:
            check_name(self.node_id, "node_id")
        for name in ("heartbeat_timeout", "lease_duration", "cleanup_interval", "poll_interval"):
            check_seconds(getattr(self, f"{name}_seconds"), f"{name}_seconds")
        if self.node_id is not None:
            self.describe(self.node_id)

    @property
    def session_s(self) -> float:
        """The length of a session: as long as both a node and a lease may be silent."""
        return max(self.heartbeat_timeout_seconds, self.lease_duration_seconds)

    def describe(self, node_id: str) -> NodeDescription:
        """Return what this configuration says of a node."""
        executors = [*self.executor_types] or ["python"]
        return NodeDescription(node_id, None, dict(self.capabilities), executors)
