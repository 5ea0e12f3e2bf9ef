"""Servers by the name of the design: a coordinator, or a read-only replica of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.validation import shorten

Mode = Literal["coordinator", "distributed_replica"]


def create_a2a_server(
    mode: Mode = "coordinator",
    coordinator_url: str | None = None,
    *,
    token: str | None = None,
    file: str | Path | None = None,
) -> Any:
    """Return the server's application: REST under /api/v1, and MCP for agents.

    `distributed_replica`: a read-only copy of the server at `coordinator_url`, in this `file`, by default replica.db in
    AAICLICK_LOCAL_ROOT. Its token of the role replica is `token`, or in AAICLICK_API_TOKEN.
    """
    if mode == "distributed_replica":
        if not coordinator_url:
            raise InputError(field="coordinator_url", value=shorten(coordinator_url), rule="it is needed", hint="")
        from aaiclick.server.app import create_replica  # here, as it needs the packages of the server
        from aaiclick.server.replicas.opening import replicated_of  # here, as above

        return create_replica(replicated_of(coordinator_url, None if file is None else Path(file), token))
    if mode != "coordinator":
        raise InputError(field="mode", value=shorten(mode), rule='"coordinator" or "distributed_replica"', hint="")
    for field, given in (("coordinator_url", coordinator_url), ("token", token), ("file", file)):
        if given is not None:
            raise InputError(field=field, value="***", rule="only for a distributed_replica", hint="")
    from aaiclick.server.app import create_app  # here, as it needs the packages of the server

    return create_app()
