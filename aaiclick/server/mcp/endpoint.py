"""The protocol of `/mcp`: tools are listed and called over streamable HTTP, each request for itself.

The protocol is the SDK's. Tokens, hosts, origins and sizes were looked at by the door before anything comes here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from aaiclick import __version__
from aaiclick.config import settings
from aaiclick.errors import AaiclickError, NotAllowed
from aaiclick.orchestration.models.token import Token
from aaiclick.orchestration.store.connecting import explain
from aaiclick.server.auth.actors import Actor
from aaiclick.server.mcp.bounds import READ_S_MAX, fitted, to_json
from aaiclick.server.mcp.catalogue import tools
from aaiclick.server.mcp.failures import Failure, failure_of, fault, too_slow, wrong_arguments
from aaiclick.server.mcp.tools import CHANGING, NOTICE, Call, Tool
from aaiclick.server.transport.request_bodies import BODY_ROOM_BYTES

INSTRUCTIONS = f"""aaiclick runs data workflows: jobs, made of tasks that depend on each other, run by workers.

To debug a failed job: find_jobs (status "failed") → list_failed_tasks → list_task_runs (tracebacks) and read_task_log
(its output) → list_objects, query_object (the data) → trace_lineage (who made it). If a task does not run:
why_pending for a task, check_health for everything.

Ids are strings of digits. `cut` says what was left out of an answer. {NOTICE}"""

log = logging.getLogger("aaiclick.server.mcp")


def session_manager(*, write: bool) -> StreamableHTTPSessionManager:
    """The SDK's side of the endpoint, to be run."""
    return StreamableHTTPSessionManager(
        create_server(write=write),
        json_response=True,
        stateless=True,
        max_request_body_size=settings().value_bytes_max + BODY_ROOM_BYTES + 1,  # the door's own limit counts
    )


def create_server(*, write: bool) -> Server[Any]:
    """The protocol's side: which tools there are, and calling them."""
    there = tools(write=write)

    async def listed(context: Any, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        role = _token(context).role
        return types.ListToolsResult(tools=[shown(tool) for tool in there.values() if role.may(tool.role)])

    async def called(context: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        tool = there.get(asked.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, _unknown(asked.name))
        token = _token(context)
        if not token.role.may(tool.role):  # to an agent that is an answer like any other
            context.request.app.state.refusals.note(403, token)
        return await call(tool, token, asked.arguments or {})

    server: Server[Any] = Server(
        "aaiclick",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=listed,
        on_call_tool=called,
        get_tool_input_schema=lambda name: there[name].input_schema if name in there else None,
    )
    server.middleware.clear()  # no spans that nobody asked for
    return server


def _token(context: Any) -> Token:
    """The token that opened the door."""
    token: Token = context.request.state.token
    return token


def _unknown(name: str) -> str:
    if name in CHANGING:
        return f"{name} changes something, and this server was not started with --mcp-write"
    return "there is no such tool"


def shown(tool: Tool) -> types.Tool:
    """A tool as the protocol lists it."""
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=not tool.changes,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
    )


async def call(tool: Tool, token: Token, given: Mapping[str, Any]) -> types.CallToolResult:
    """Call a tool. Whatever goes wrong is an answer too, and never tells a stack."""
    try:
        return await _answered(tool, token, given)
    except AaiclickError as error:
        return failed(failure_of(error))
    except TimeoutError:
        return failed(too_slow())
    except Exception as error:
        known = explain(error, settings().sql_url)
        if known is None:
            log.exception("the tool %s failed", tool.name)
        return failed(fault() if known is None else failure_of(known))


async def _answered(tool: Tool, token: Token, given: Mapping[str, Any]) -> types.CallToolResult:
    if not token.role.may(tool.role):
        cause = f"it needs the role {tool.role}, and the token's is {token.role}"
        raise NotAllowed(what=f"The tool {tool.name}", cause=cause, hint="")
    try:
        asked = tool.asked.model_validate(given)
    except ValidationError as error:
        return failed(wrong_arguments(error))
    current = Call(Actor(token))
    limited = contextlib.nullcontext() if tool.changes else asyncio.timeout(READ_S_MAX)
    async with limited:
        found = await tool.function(current, asked)
    answer = fitted(dict(found), tool.bounds, current.cut)
    whole = {"answer": answer, "cut": current.cut, "notice": NOTICE}
    return types.CallToolResult(content=[types.TextContent(text=to_json(whole))], structured_content=whole)


def failed(failure: Failure) -> types.CallToolResult:
    """The answer to a call that failed."""
    body = {"error": failure.model_dump(mode="json", exclude_none=True)}
    return types.CallToolResult(content=[types.TextContent(text=to_json(body))], is_error=True)
