"""The logs of runs."""
