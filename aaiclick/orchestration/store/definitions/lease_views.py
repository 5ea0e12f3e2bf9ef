"""The views `distributed_nodes` and `task_leases`: nodes and claims by other names. They store nothing.

Tokens are no part of leases here: in the column's place is an id, which says who holds which run.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, MetaData, event, text

from aaiclick.orchestration.store.definitions.common_columns import metadata
from aaiclick.orchestration.store.definitions.task_events import CREATE, CREATE_ON_MARIADB

_NODES = """{create} distributed_nodes AS
SELECT n.name AS node_id, n.executor_types AS executor_types, n.capabilities AS capabilities,
    CASE WHEN s.heartbeat_at IS NULL THEN 'dead' WHEN {overdue} THEN 'stale' ELSE 'healthy' END AS status,
    s.heartbeat_at AS heartbeat_at, n.registered_at AS registered_at
FROM nodes n LEFT JOIN (
    SELECT node_id, max(last_heartbeat) AS heartbeat_at, max(expires_at) AS expires_at FROM workers
    WHERE status <> 'stopped' GROUP BY node_id
) s ON s.node_id = n.id"""

_LEASES = """{create} task_leases AS
SELECT c.task_id AS task_id, n.name AS node_id, {lease} AS lease_token,
    t.claimed_at AS acquired_at, w.expires_at AS expires_at
FROM claims c JOIN tasks t ON t.id = c.task_id JOIN workers w ON w.id = c.worker_id
LEFT JOIN nodes n ON n.id = w.node_id"""

_OVERDUE = {
    "postgresql": "clock_timestamp() - s.heartbeat_at > (s.expires_at - s.heartbeat_at) / 2",
    "sqlite": "2 * (julianday('now') - julianday(s.heartbeat_at))"
    " > julianday(s.expires_at) - julianday(s.heartbeat_at)",
    "mysql": "2 * TIMESTAMPDIFF(MICROSECOND, s.heartbeat_at, UTC_TIMESTAMP(6))"
    " > TIMESTAMPDIFF(MICROSECOND, s.heartbeat_at, s.expires_at)",
}
"""Whether half of the session has passed since the heartbeat, as `rules/nodes.status_of` says it."""

_LEASE = (
    "CAST(c.worker_id AS varchar(20)) || '-' || CAST(c.task_id AS varchar(20)) || '-' || CAST(c.epoch AS varchar(11))"
)
_LEASE_ON_MARIADB = "CONCAT(c.worker_id, '-', c.task_id, '-', c.epoch)"


def create_views(dialect_name: str) -> list[str]:
    """Return the statements that create the views."""
    is_mariadb = dialect_name in ("mysql", "mariadb")
    create = CREATE_ON_MARIADB if is_mariadb else CREATE
    overdue = _OVERDUE["mysql" if is_mariadb else dialect_name]
    lease = _LEASE_ON_MARIADB if is_mariadb else _LEASE
    return [_NODES.format(create=create, overdue=overdue), _LEASES.format(create=create, lease=lease)]


@event.listens_for(metadata, "after_create")
def _create(_: MetaData, connection: Connection, **__: Any) -> None:
    for statement in create_views(connection.dialect.name):
        connection.execute(text(statement))
