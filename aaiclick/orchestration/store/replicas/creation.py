"""What the file of a replica has beside the schema of the state, and in place of some of it."""

from __future__ import annotations

from sqlalchemy import Connection, text

from aaiclick.orchestration.store.replicas.applying import replica_tables

LIVE = "status IN ('claimed', 'running')"

CLAIMS = (
    "DROP TABLE claims",
    f"CREATE INDEX ix_tasks_live ON tasks (worker_id) WHERE {LIVE}",
    f"CREATE VIEW claims AS SELECT worker_id, id AS task_id, epoch, 0 AS claim_call FROM tasks WHERE {LIVE}",  # noqa: S608
)
"""Claims are not copied: which tasks are held is in their rows."""


def add_replica_tables(connection: Connection) -> None:
    """Make a new database of the state that of a replica."""
    for statement in CLAIMS:
        connection.execute(text(statement))
    replica_tables.create_all(connection)
