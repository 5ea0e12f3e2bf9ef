"""The tables of metrics: what the events so far have come to."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, String

from aaiclick.orchestration.store.definitions.common_columns import table

metrics = table(
    "metrics",
    Column("name", String(100), primary_key=True),
    Column("bucket", String(20), primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("seconds", Double, nullable=False),
)
"""Counters and histograms made from the events so far; the row `horizon` says up to which event."""

job_metrics = table(
    "job_metrics",
    Column("job", String(200), primary_key=True),
    Column("name", String(100), primary_key=True),
    Column("bucket", String(20), primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("seconds", Double, nullable=False),
)
"""The part of `metrics` that belongs to jobs of one name, for a bounded number of names."""
