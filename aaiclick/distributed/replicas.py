"""Servers by the name of the design. Replicas are made where they exist, and refused where they do not."""

from __future__ import annotations

from typing import Any, Literal

from aaiclick.errors import Conflict, InputError
from aaiclick.orchestration.rules.validation import shorten

Mode = Literal["coordinator", "distributed_replica"]


def create_a2a_server(mode: Mode = "coordinator", coordinator_url: str | None = None) -> Any:
    """Return the server's application: REST under /api/v1, and MCP for agents.

    `distributed_replica` would be a read-only copy of the server at `coordinator_url`. There are no replicas yet: it
    raises Conflict.
    """
    if mode == "distributed_replica":
        hint = f"Ask {coordinator_url or 'the server'} itself: any number of servers may serve one database."
        raise Conflict(what="A replica", verb="started", cause="this version has no replicas", hint=hint)
    if mode != "coordinator":
        raise InputError(field="mode", value=shorten(mode), rule='"coordinator" or "distributed_replica"', hint="")
    from aaiclick.server.app import create_app  # here, as it needs the packages of the server

    return create_app()
