"""Commands about jobs, tasks and the catalogue."""
