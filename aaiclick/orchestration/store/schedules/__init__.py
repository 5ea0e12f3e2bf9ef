"""The catalogue, and the schedules that fire."""
