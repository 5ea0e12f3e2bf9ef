"""Read-only servers: a copy of the coordinator's state in a file of their own, kept up by its events."""
