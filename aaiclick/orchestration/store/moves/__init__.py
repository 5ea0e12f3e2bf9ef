"""Moves of tasks, groups and jobs, and what follows from them in the rest of the graph."""
