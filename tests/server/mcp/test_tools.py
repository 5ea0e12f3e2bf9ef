"""What a tool is made of."""

from __future__ import annotations

import json

import jsonschema  # type: ignore[import-untyped]
import pytest
from typing_extensions import TypedDict

from aaiclick.orchestration.rules.roles import Role
from aaiclick.server.mcp.catalogue import tools
from aaiclick.server.mcp.tools import Arguments, Call, Tool, bare


class Asked(Arguments):
    title: str
    number: int = 3


class Told(TypedDict):
    words: list[str]


async def say_it(call: Call, asked: Asked) -> Told:
    """Say it."""
    return Told(words=[asked.title])


def test_a_tool_is_told_by_its_function() -> None:
    tool = Tool(say_it, Role.VIEWER)
    assert (tool.name, tool.title, tool.description) == ("say_it", "Say it", "Say it.")
    assert tool.asked is Asked
    assert tool.input_schema["properties"] == {"title": {"type": "string"}, "number": {"type": "integer", "default": 3}}
    assert tool.input_schema["additionalProperties"] is False
    assert set(tool.output_schema["properties"]) == {"answer", "cut", "notice"}


def test_titles_go_and_fields_of_that_name_stay() -> None:
    schema = {"title": "X", "properties": {"title": {"title": "Title", "type": "string"}}, "anyOf": [{"title": "Y"}]}
    assert bare(schema) == {"properties": {"title": {"type": "string"}}, "anyOf": [{}]}


@pytest.mark.parametrize("tool", tools(write=True).values(), ids=lambda tool: tool.name)
def test_every_schema_is_one(tool: Tool) -> None:
    jsonschema.Draft202012Validator.check_schema(tool.input_schema)
    jsonschema.Draft202012Validator.check_schema(tool.output_schema)


def test_what_an_agent_reads_of_all_tools_is_not_long() -> None:
    words = [[tool.name, tool.description, tool.input_schema] for tool in tools(write=True).values()]
    assert len(json.dumps(words)) < 34_500
