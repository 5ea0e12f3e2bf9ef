"""Registered jobs, the times at which their schedules fire, and backfills."""
