"""All tools, in the order in which an agent reads of them."""

from __future__ import annotations

from aaiclick.server.mcp import changes, fleet, jobs, objects, tasks
from aaiclick.server.mcp.tools import CHANGING, READING, Tool

ROOMS = (jobs, tasks, objects, fleet, changes)
_ORDER = [room.__name__ for room in ROOMS]


def tools(*, write: bool) -> dict[str, Tool]:
    """The tools that exist, by their names; those that change something only if that was allowed."""
    found = READING | CHANGING if write else READING
    return dict(sorted(found.items(), key=lambda each: _ORDER.index(each[1].function.__module__)))
