"""References to the ClickHouse tables of Objects: which tasks, runs and jobs need a table, and when they stop."""
