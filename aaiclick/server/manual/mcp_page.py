"""The page of the manual with all tools, made from the tools.

The page is written anew by: python -m aaiclick.server.manual.mcp_page > docs/reference/mcp.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from aaiclick.server.app import create_app
from aaiclick.server.mcp import bounds
from aaiclick.server.mcp.agents import PATH
from aaiclick.server.mcp.catalogue import tools
from aaiclick.server.mcp.failures import TO_DO, Failure
from aaiclick.server.mcp.tools import NOTICE, Envelope, Tool
from aaiclick.server.openapi import document

HEAD = f"""# MCP tools

Generated from the tools that the server offers at `{PATH}`. See
[HTTP server and agents](../guides/server.md#agents-mcp) for how to connect an agent. Answers are those of
[REST](rest.md#requests-and-answers), in an envelope; unknown arguments are refused; ids are strings.
"""

LIMITS = (
    ("an answer, as JSON", f"{bounds.ANSWER_BYTES_MAX:,} bytes"),
    ("one text in an answer", f"{bounds.TEXT_LENGTH_MAX:,} characters"),
    ("one value in a row", f"{bounds.CELL_LENGTH_MAX:,} characters"),
    ("a log", f"{bounds.LOG_BYTES_MAX:,} bytes"),
    ("a page, rows of an Object", f"{bounds.PAGE_MAX}, by default {bounds.PAGE_DEFAULT}"),
    ("a lineage, in each direction", f"{bounds.OPERATIONS_MAX} operations"),
    ("a lineage, between columns", f"{bounds.EDGES_MAX} edges"),
    ("a tool that only reads", f"{bounds.READ_S_MAX:g} seconds"),
)


def mcp_markdown() -> str:
    """The page docs/reference/mcp.md."""
    parts = (_envelope(), _limits(), _looking(), _changing())
    return "\n".join([HEAD, *(line for part in parts for line in part)]) + "\n"


def _envelope() -> Iterator[str]:
    yield "## What is answered\n"
    yield "Every answer is JSON, in `structuredContent` and as text:\n"
    yield "- `answer`: what the tool returns"
    for name in ("cut", "notice"):
        yield f"- `{name}`: {Envelope.model_fields[name].description}"
    yield f"\n> {NOTICE}\n"
    yield "A failed call returns `isError` and `error`; it never contains a stack trace:\n"
    yield from (f"- `{name}`: {facts.description}" for name, facts in Failure.model_fields.items())
    yield "\nIf an error has no hint of its own, `to_do` follows from the status that REST would answer with:\n"
    yield "| status | to do |"
    yield "|---|---|"
    yield from (f"| {status} | {words} |" for status, words in TO_DO.items())


def _limits() -> Iterator[str]:
    yield "\n## Limits\n"
    yield "| of | at most |"
    yield "|---|---|"
    yield from (f"| {of} | {most} |" for of, most in LIMITS)
    yield "\nThe middle of long texts and the end of long lists are left out, and `cut` says so; the `next` of a"
    yield "cut page continues after its last row. Queries on Objects have the limits of REST, too."


def _changing() -> Iterator[str]:
    yield "\n## Tools that change something\n"
    yield "They exist only where the server was started with `--mcp-write` or `AAICLICK_MCP_WRITE=1`, for tokens with"
    yield "the role. Each call is first recorded in the audit log, see [HTTP server"
    yield "and agents](../guides/server.md#audit-log)."
    yield from _tools(tool for tool in tools(write=True).values() if tool.changes)


def _looking() -> Iterator[str]:
    yield "\n## Tools that only read"
    yield from _tools(tools(write=False).values())


def _tools(chosen: Iterable[Tool]) -> Iterator[str]:
    told_of_rest = document(create_app())["components"]["schemas"]
    for tool in chosen:
        yield f"\n### {tool.name}\n"
        yield tool.description
        yield ""
        needed = tool.input_schema.get("required", ())
        for name, facts in tool.input_schema.get("properties", {}).items():
            yield _argument(name, facts, needed=name in needed)
        answer = tool.output_schema["properties"]["answer"]["$ref"].rpartition("/")[2]
        yield f"- answer: [{answer}](rest.md#{answer.lower()})" if answer in told_of_rest else f"- answer: `{answer}`"
        hints = [word for word, holds in (("destructive", tool.destructive), ("idempotent", tool.idempotent)) if holds]
        if tool.changes:
            yield f"- role: `{tool.role}`" + (f"; {', '.join(hints)}" if hints else "")


def _argument(name: str, facts: dict[str, Any], *, needed: bool) -> str:
    words, default = facts.get("description", ""), facts.get("default")
    told = "required" if needed else "optional" if default in (None, [], {}) else f"default {default!r}"
    return f"- `{name}` ({_kind(facts)}, {told}){': ' if words else ''}{words}"


def _kind(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"] if each.get("type") != "null")
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}"
    return str(schema.get("type") or "anything")


if __name__ == "__main__":
    sys.stdout.write(mcp_markdown())
