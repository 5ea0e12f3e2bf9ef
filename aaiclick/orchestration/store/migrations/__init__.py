"""The migrations of the schema, one file in `versions/` for each step; `store.schema` runs them.

Rules for a new step `NNNN_name.py`, whose revision is NNNN, one more than the last:

- it spells out what it makes and never reads `store.tables`, because a released step must never change;
- MariaDB commits at every DDL statement, so a step that is interrupted leaves its first statements applied. A step is
  either one statement or can be repeated (IF NOT EXISTS there); `aaiclick migrate upgrade head` then continues;
- expand, backfill, contract: code one version older must still run on the new schema.
"""
