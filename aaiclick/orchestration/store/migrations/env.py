"""The script that Alembic executes to run the migrations; `store.schema` passes its options."""

from __future__ import annotations

from alembic import context

context.configure(**context.config.attributes["options"])
with context.begin_transaction():
    context.run_migrations()
