"""The view `task_events`: the events of tasks, under other names.

Each row is one event; for a claim, one run is looked up by its key. A query for one job, or for the newest rows, reads
only these.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, MetaData, event, text

from aaiclick.orchestration.rules.naming.event_types import EPOCHS_BETWEEN, EVENT_TYPES, REASSIGNED
from aaiclick.orchestration.store.definitions.common_columns import metadata

_VIEW = """{create} task_events AS
SELECT e.id AS event_id, e.job_id AS job_id, e.task_id AS task_id, e.epoch AS epoch,
    CASE WHEN lost.task_id IS NOT NULL THEN '{reassigned}'
        {names}
        ELSE e.move END AS event_type,
    e.worker_id AS node_id, e.at AS timestamp, e.detail AS details, e.move AS move, e.status AS status
FROM events e LEFT JOIN runs lost ON e.move = 'claim' AND lost.task_id = e.task_id
    AND lost.epoch = e.epoch - {between} AND lost.outcome = 'lost'
WHERE e.task_id IS NOT NULL"""

CREATE, CREATE_ON_MARIADB = "CREATE VIEW", "CREATE OR REPLACE SQL SECURITY INVOKER VIEW"
"""On MariaDB it may have to be repeated; and the view has the rights of its reader there, not those of its creator."""


def create_view(dialect_name: str) -> str:
    """Return the statement that creates the view."""
    names = [f"WHEN e.move = '{move}' THEN '{name}'" for move, name in EVENT_TYPES.items()]
    return _VIEW.format(
        create=CREATE_ON_MARIADB if dialect_name in ("mysql", "mariadb") else CREATE,
        reassigned=REASSIGNED,
        names="\n        ".join(names),
        between=EPOCHS_BETWEEN,
    )


@event.listens_for(metadata, "after_create")
def _create(_: MetaData, connection: Connection, **__: Any) -> None:
    connection.execute(text(create_view(connection.dialect.name)))
