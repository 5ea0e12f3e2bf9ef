"""What is said on the bus. A hint may be lost, repeated or late: it says where to look, never what is there."""

READY = "ready"
"""Some task may be claimed."""

ORDERS = "orders"
"""A worker had better send its heartbeat now: a run of its was cancelled or cleared, or it is to drain."""

ENDED = "ended"
"""Some job has ended."""
