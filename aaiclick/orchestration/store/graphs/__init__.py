"""Graphs of jobs: how they are inserted, and how they grow later."""
