"""The listening socket of the server. Does not import FastAPI, for processes that only bind the socket for a server."""

from __future__ import annotations

import errno
import ipaddress
import socket

from aaiclick.errors import InputError
from aaiclick.orchestration.access.tokens import MAKE_ONE, has_valid_token

LOOPBACK_HOST = "127.0.0.1"
PORT = 8765


async def refuse_without_token(host: str) -> None:
    """Raise InputError if the host is reachable from other machines and no valid token exists yet."""
    if not is_loopback(host) and not await has_valid_token():
        rule = "to listen beyond this machine, the server needs a valid token"
        raise InputError(field="--host", value=host, rule=rule, hint=f"{MAKE_ONE}, or listen on {LOOPBACK_HOST}.")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_any(listening: socket.socket) -> bool:
    """Return whether the socket listens on all addresses of the machine."""
    host: str = listening.getsockname()[0]
    return ipaddress.ip_address(host.partition("%")[0]).is_unspecified


def url_of(listening: socket.socket) -> str:
    """Return the URL of a listening socket."""
    name, number = listening.getsockname()[:2]
    return f"http://[{name}]:{number}" if ":" in name else f"http://{name}:{number}"


def listen(host: str, port: int) -> socket.socket:
    """Return a listening TCP socket; raise InputError if the address does not exist, is taken or cannot be used."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        rule, hint = "there is no such address", f"Listen on {LOOPBACK_HOST}, or on another address of this machine."
        raise InputError(field="--host", value=host[:80], rule=rule, hint=hint) from None
    family, kind, protocol, _, address = found[0]
    listening = socket.socket(family, kind, protocol)  # asyncio sets TCP_NODELAY only if the protocol is given
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(1024)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            hint = "Choose another port with --port; 0 takes any free port."
            raise InputError(field="--port", value=port, rule="another process listens there", hint=hint) from None
        rule = f"it cannot be used: {error.strerror}"
        raise InputError(field="--host", value=f"{host}:{port}", rule=rule, hint="") from None
    return listening
