"""The view `execution_idempotency`: what is remembered of each execution of a task, with its idempotency key.

One row for each run that ended, and one for each that goes on. It is read from `tasks` and `runs`, and stores nothing.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, MetaData, event, text

from aaiclick.orchestration.store.definitions.common_columns import metadata
from aaiclick.orchestration.store.definitions.task_events import CREATE, CREATE_ON_MARIADB

_VIEW = """{create} execution_idempotency AS
SELECT t.id AS task_id, r.epoch AS attempt_id, coalesce(t.idempotency_key, {ended}) AS idempotency_key,
    CASE WHEN r.outcome = 'completed' AND r.epoch = t.epoch THEN t.result END AS result,
    CASE WHEN r.outcome = 'completed' THEN 'completed' ELSE 'failed' END AS status,
    r.claimed_at AS created_at
FROM runs r JOIN tasks t ON t.id = r.task_id
UNION ALL SELECT t.id, t.epoch, coalesce(t.idempotency_key, {live}), NULL, 'pending', t.claimed_at
FROM tasks t WHERE t.status IN ('claimed', 'running')"""

_KEY = "CAST(t.id AS varchar(20)) || '-' || CAST({of}.generation AS varchar(11))"
_KEY_ON_MARIADB = "CONCAT(t.id, '-', {of}.generation)"
"""The key of a task that was given none: its id, and how often it was cleared, as `Claim.idempotency_key` has it."""


def create_view(dialect_name: str) -> str:
    """Return the statement that creates the view."""
    is_mariadb = dialect_name in ("mysql", "mariadb")
    key = _KEY_ON_MARIADB if is_mariadb else _KEY
    create = CREATE_ON_MARIADB if is_mariadb else CREATE
    return _VIEW.format(create=create, ended=key.format(of="r"), live=key.format(of="t"))


@event.listens_for(metadata, "after_create")
def _create(_: MetaData, connection: Connection, **__: Any) -> None:
    connection.execute(text(create_view(connection.dialect.name)))
