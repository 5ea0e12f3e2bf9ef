"""Read-only questions about stored jobs, tasks, groups, events, logs and metrics. Each opens its own connection."""
