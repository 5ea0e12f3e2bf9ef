"""The hints sent on the bus. A hint may be lost, repeated or late: its receiver reads the state from the database."""

READY = "ready"
"""A task may be ready to be claimed."""

ORDERS = "orders"
"""A worker should send its heartbeat now: one of its runs was cancelled or cleared, or it is to drain."""

FREED = "freed"
"""A run let go of resources: tasks that wait for some may be claimed."""

ENDED = "ended"
"""A job has ended."""
