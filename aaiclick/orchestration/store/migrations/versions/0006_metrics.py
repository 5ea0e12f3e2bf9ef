"""Counters and histograms, kept from the events."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Double, String

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "metrics",
        Column("name", String(100), primary_key=True),
        Column("bucket", String(20), primary_key=True),
        Column("number", BigInteger, nullable=False),
        Column("seconds", Double, nullable=False),
        # MariaDB commits at each statement; the others undo a step that was cut off
        if_not_exists=op.get_context().dialect.name in ("mysql", "mariadb"),
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_nopad_bin",
        mariadb_engine="InnoDB",
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_nopad_bin",
    )
