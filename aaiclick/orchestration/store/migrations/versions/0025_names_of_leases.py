"""Nodes and claims are shown under the names of leases."""

from __future__ import annotations

from alembic import op

from aaiclick.orchestration.store.migrations.steps import must_be_repeatable

revision = "0025"
down_revision = "0024"

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


def upgrade() -> None:
    dialect = op.get_context().dialect.name
    is_mariadb = must_be_repeatable()
    create = "CREATE OR REPLACE SQL SECURITY INVOKER VIEW" if is_mariadb else "CREATE VIEW"
    overdue = _OVERDUE["mysql" if is_mariadb else dialect]
    op.execute(_NODES.format(create=create, overdue=overdue))
    op.execute(_LEASES.format(create=create, lease=_LEASE_ON_MARIADB if is_mariadb else _LEASE))
