"""What Alembic calls to run the steps. What it needs to know comes from `store.schema`."""

from __future__ import annotations

from alembic import context

context.configure(**context.config.attributes["options"])
with context.begin_transaction():
    context.run_migrations()
