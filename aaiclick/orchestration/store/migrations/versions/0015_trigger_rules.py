"""Trigger rules of tasks and groups, with what they count; tasks that were skipped; children of groups that go on."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Integer, String, text

from aaiclick.orchestration.store.migrations.steps import flag, must_be_repeatable

revision = "0015"
down_revision = "0014"

_ENDED = "('completed', 'failed', 'cancelled', 'upstream_failed')"
_NESTED_MAX = 50
"""How deep groups may be where nobody can be asked: a script is printed."""


def upgrade() -> None:
    repeatable = must_be_repeatable()
    op.add_column("jobs", _count("skipped_tasks"), if_not_exists=repeatable)
    op.add_column("groups", _count("unended_count"), if_not_exists=repeatable)
    for table in ("groups", "tasks"):
        rule = Column("trigger_rule", String(20), nullable=False, server_default=text("'all_completed'"))
        for column in (rule, _count("awaited_count"), flag("amiss")):
            op.add_column(table, column, if_not_exists=repeatable)
    _count_children()


def _count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text("0"))


def _count_children() -> None:
    """How much of each group has not ended, those inside others first; repeated, it begins anew."""
    own = f"(SELECT count(*) FROM tasks WHERE tasks.group_id = groups.id AND tasks.status NOT IN {_ENDED})"
    op.execute(f"UPDATE groups SET unended_count = {own}")
    for depth in range(_deepest(), 0, -1):
        inner = f"SELECT parent_group_id, count(*) AS size FROM groups WHERE unended_count > 0 AND depth = {depth}"
        found = f"(SELECT * FROM ({inner} GROUP BY parent_group_id) AS inside)"
        op.execute(
            f"UPDATE groups SET unended_count = unended_count + (SELECT size FROM {found} AS found"
            f" WHERE found.parent_group_id = groups.id) WHERE id IN (SELECT parent_group_id FROM {found} AS found)"
        )


def _deepest() -> int:
    if op.get_context().as_sql:
        return _NESTED_MAX
    return op.get_bind().scalar(text("SELECT max(depth) FROM groups")) or 0
