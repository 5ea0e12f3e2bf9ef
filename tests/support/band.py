"""A database with a coordinator and a worker, for tests of graphs; and groups to play with. Import what you use."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aaiclick.orchestration.models import Group, Task
from tests.support.orchestra import Orchestra, make, orchestra

__all__ = ["SERVERS", "band", "filled", "member"]

SERVERS = pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)
"""For what takes two transactions at the same time."""


@pytest.fixture
async def band(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    """On each of the three databases, with no rows but a worker's."""
    async with orchestra(migrated_sql_url) as opened:
        yield opened


def member(group: Group, name: str = "member") -> Task:
    """A task of this group."""
    return make(name, group_id=group.id)


def filled(name: str = "g", *, inside: Group | None = None) -> Group:
    """A group with one task, called after it."""
    group = Group(name, parent_group_id=inside.id if inside else None)
    member(group, f"in {name}")
    return group
