"""Graphs, as they are inserted and as they grow."""
