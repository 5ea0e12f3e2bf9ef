"""The door of a fleet's server: where it listens, and the first token that opens it.

The fleet holds the socket, not the server: while a server that died is started again, callers wait in line.
"""

from __future__ import annotations

import socket
from importlib.util import find_spec
from pathlib import Path

from aaiclick.backend import is_sqlite
from aaiclick.cli.admin.token_files import token_in_file
from aaiclick.errors import InputError, MissingExtra
from aaiclick.orchestration.access.tokens import list_tokens
from aaiclick.server.transport.addresses import LOOPBACK_HOST, PORT, listen, refuse_without_token

PACKAGES = ("fastapi", "mcp", "uvicorn")
TOKEN_NAME = "local start"  # noqa: S105 (a name)


def open_door(host: str | None, port: int | None) -> socket.socket | None:
    """Return a listening socket; None if no server is installed and none was requested.

    If no port was given and the default port is taken, any free port is used.
    """
    missing = next((package for package in PACKAGES if find_spec(package) is None), None)
    if missing is not None:
        if host is None and port is None:
            return None
        raise MissingExtra(what="The server", package=missing, extra="server")
    where = LOOPBACK_HOST if host is None else host
    try:
        return listen(where, PORT if port is None else port)
    except InputError as error:
        if port is not None or error.facts["field"] != "--port":
            raise
        return listen(where, 0)


async def first_token(door: socket.socket) -> Path | None:
    """Create an admin token for a local database that never had one, and return its file; else None.

    The server does not listen beyond this machine without a valid token.
    """
    made = None
    if is_sqlite() and not await list_tokens():
        made = await token_in_file(TOKEN_NAME)
    await refuse_without_token(door.getsockname()[0])
    return made
