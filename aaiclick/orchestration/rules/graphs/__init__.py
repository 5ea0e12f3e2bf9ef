"""The structure of graphs of tasks and groups, and the counters of what each node waits for."""
