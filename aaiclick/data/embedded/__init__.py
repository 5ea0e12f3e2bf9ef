"""The embedded engine, and who owns its directory."""
