"""The embedded engine, and the lock by which one process owns its directory."""
