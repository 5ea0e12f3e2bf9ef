"""Cron, and which of its times are due, were missed, or belong to a backfill."""
