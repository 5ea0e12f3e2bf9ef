"""The log of operations, and which columns come from which."""
