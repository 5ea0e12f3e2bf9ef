"""Which columns come from which, and the log of operations."""
