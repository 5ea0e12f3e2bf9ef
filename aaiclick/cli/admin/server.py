"""`aaiclick server`: the front door over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aaiclick.cli.event_loop import wait_for
from aaiclick.cli.output import say

if TYPE_CHECKING:
    import socket

app = typer.Typer(rich_markup_mode=None)


@app.callback()
def _server() -> None:
    """With a callback, the verb must be named."""


@app.command()
def start(
    host: Annotated[str, typer.Option(help="The address to listen on; beyond this machine it needs a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes any free port.")] = 8765,
    app_dir: Annotated[
        str | None, typer.Option(help="The directory of the modules with the tasks; by default the current directory.")
    ] = None,
    mcp_write: Annotated[
        bool,
        typer.Option(
            "--mcp-write", help="Also offer agents at /mcp tools that change something, as far as their roles allow."
        ),
    ] = False,
    tls_cert: Annotated[
        Path | None, typer.Option(help="Serve https with the certificate in this file, with those between, in PEM.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key, unless that is in the same file.")] = None,
    tls_client_ca: Annotated[
        Path | None, typer.Option(help="Refuse callers without a certificate of this authority (mTLS).")
    ] = None,
    replica_of: Annotated[
        str | None,
        typer.Option(
            help="Be a read-only copy of the server at this address, whose token of the role replica is in "
            "AAICLICK_API_TOKEN; several addresses with commas."
        ),
    ] = None,
    replica_file: Annotated[
        Path | None, typer.Option(help="The file of the copy; by default replica.db in AAICLICK_LOCAL_ROOT.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show every request.")] = False,
    descriptor: Annotated[
        int | None,
        typer.Option("--fd", hidden=True, min=3, help="A listening socket, inherited from the parent process."),
    ] = None,
) -> None:
    """Serve jobs, tasks, workers, Objects and events over HTTP until Ctrl-C or SIGTERM."""
    from aaiclick.cli.admin.module_paths import find_modules_in  # here, to keep start-up light
    from aaiclick.errors import MissingExtra  # here, to keep start-up light
    from aaiclick.telemetry.log_lines import log_to_stderr  # here, to keep start-up light

    find_modules_in(app_dir)
    _check_replica(replica_of, replica_file, mcp_write)
    try:
        from aaiclick.server.replicas.opening import replicated_of  # here, to keep start-up light
        from aaiclick.server.serving import serve  # here, to keep start-up light
        from aaiclick.server.transport.tls import chosen_tls  # here, to keep start-up light
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "starlette", "pydantic", "mcp", "mcp_types"):
            raise
        raise MissingExtra(what="The server", package=error.name, extra="server") from None
    log_to_stderr()
    given = None if descriptor is None else _socket(descriptor)
    tls = chosen_tls(tls_cert, tls_key, tls_client_ca)
    replicated = None if replica_of is None else replicated_of(replica_of, replica_file)
    which = {"given": given, "mcp_write": mcp_write or None, "tls": tls, "replicated": replicated}
    wait_for(serve(host, port, told=_serving, verbose=verbose, **which))  # type: ignore[arg-type]


def _check_replica(replica_of: str | None, replica_file: Path | None, mcp_write: bool) -> None:
    """Raise InputError for options that do not go together."""
    from aaiclick.errors import InputError  # here, to keep start-up light

    if replica_of is not None and mcp_write:
        raise InputError(field="--mcp-write", value="set", rule="a replica only reads", hint="")
    if replica_of is None and replica_file is not None:
        raise InputError(field="--replica-file", value=str(replica_file), rule="it needs --replica-of", hint="")


def _serving(where: str) -> None:
    say(f"aaiclick: serving {where}/api/v1")


def _socket(descriptor: int) -> socket.socket:
    import socket  # here, to keep start-up light

    from aaiclick.errors import InputError  # here, to keep start-up light

    try:
        return socket.socket(fileno=descriptor)
    except OSError:
        raise InputError(field="--fd", value=descriptor, rule="it is not a socket", hint="") from None
