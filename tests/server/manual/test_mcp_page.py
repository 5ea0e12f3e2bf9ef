"""The page of the manual with all tools."""

from __future__ import annotations

from pathlib import Path

from aaiclick.server.manual.mcp_page import mcp_markdown
from aaiclick.server.mcp.catalogue import tools

PAGE = Path(__file__).parents[3] / "docs/reference/mcp.md"


def test_the_page_of_the_manual_is_up_to_date() -> None:
    assert PAGE.read_text() == mcp_markdown(), "run: python -m aaiclick.server.manual.mcp_page > docs/reference/mcp.md"


def test_every_tool_is_on_it_with_its_arguments() -> None:
    page = mcp_markdown()
    for tool in tools(write=True).values():
        assert f"### {tool.name}\n" in page
        for name in tool.input_schema.get("properties", {}):
            assert f"- `{name}` (" in page
