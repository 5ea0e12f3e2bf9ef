"""The schema's history, one file in `versions/` for each step; `store.schema` runs it.

Rules for a new step `NNNN_name.py`, whose revision is NNNN, one more than the last:

- it says itself what it makes and never reads `store.tables`: a step that is out is never changed;
- MariaDB commits at every DDL statement, so that a step cut off half-way leaves its beginning behind. A step either is
  one statement or can be repeated (IF NOT EXISTS there), and running `aaiclick migrate upgrade head` again goes on;
- expand, backfill, contract: code one version older must still run on the new schema.
"""
