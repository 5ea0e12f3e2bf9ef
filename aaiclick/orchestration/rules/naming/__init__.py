"""Names of logs, event types, hints and scripts, and what entrypoints named from outside may reach."""
