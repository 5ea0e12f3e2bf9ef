"""Queries. They only read, except that `metrics` and `job_metrics` also store what they have counted for good."""
