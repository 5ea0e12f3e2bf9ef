"""All tools."""

from __future__ import annotations

from aaiclick.server.mcp.catalogue import tools
from aaiclick.server.mcp.tools import CHANGING, READING


def test_the_first_is_where_to_begin_and_changes_come_last() -> None:
    names = list(tools(write=True))
    assert names[0] == "find_jobs"
    assert set(names[-len(CHANGING) :]) == CHANGING.keys()
    assert list(tools(write=False)) == names[: len(READING)]


def test_names_are_not_used_twice() -> None:
    assert not READING.keys() & CHANGING.keys()
