"""Opening the coordinator of the servers that the settings name: as the node that this machine is."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Sequence

from aaiclick.config import Settings
from aaiclick.errors import ConfigError, NotAuthenticated
from aaiclick.orchestration.coordinator.http.calls import Calls
from aaiclick.orchestration.coordinator.http.client import HttpCoordinator
from aaiclick.orchestration.coordinator.http.credentials import Credentials
from aaiclick.orchestration.coordinator.http.front_door import HttpFrontDoor
from aaiclick.orchestration.coordinator.http.protocol import Ask, GivenToken, Identity, Join
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.roles import Role
from aaiclick.server_address import Address

SIGN_IN_S_MAX = 10.0
"""The timeout of a call that begins the work of a process: until then it has no heartbeat."""

_credentials: dict[str, Credentials] = {}
_lock = threading.Lock()


def credentials_of(config: Settings) -> Credentials:
    """Return the credentials of this process: all of its event loops share them."""
    with _lock:
        made = Credentials(config.api_token, config.local_root / "node_tokens")
        return _credentials.setdefault(f"{config.local_root} {config.api_token}", made)


async def opened_coordinator(config: Settings, node: NodeDescription | None = None) -> HttpCoordinator:
    """Make the coordinator of this event loop, and join first if the token is one for joining.

    Raises what the server says: that the token does not count, or that it speaks another version.
    """
    credentials = credentials_of(config)
    coordinator = HttpCoordinator(calls_of(config, credentials), credentials)
    try:
        await _sign_in(coordinator.calls, credentials, node or NodeDescription(socket.gethostname()))
        await coordinator.grant_ids()
    except BaseException:
        coordinator.close()
        raise
    return coordinator


async def opened_front_door(config: Settings) -> HttpFrontDoor:
    """Make the front door of this event loop, for a body; its worker has joined before, and renews the token."""
    credentials = credentials_of(config)
    credentials.refresh()
    return HttpFrontDoor(calls_of(config, credentials))


def calls_of(config: Settings, credentials: Credentials) -> Calls:
    """Make the calls of this event loop; nothing is sent yet."""
    addresses = [Address.of(url, "AAICLICK_COORDINATOR_URL") for url in config.coordinator_urls]
    return Calls(addresses, lambda: credentials.text, secured=secured_for(addresses, config))


def secured_for(addresses: Sequence[Address], config: Settings) -> ssl.SSLContext | None:
    """Return how to speak TLS with these servers; None if none of them does."""
    return _secured(config) if any(address.secure for address in addresses) else None


def _secured(config: Settings) -> ssl.SSLContext:
    """Return how to speak TLS: with the authorities of the system, or of the file that SSL_CERT_FILE names."""
    context = ssl.create_default_context()
    if config.api_cert is not None:
        try:
            context.load_cert_chain(config.api_cert)
        except OSError as error:  # also of ssl
            rule = f"it cannot be used: {error.strerror or error}"
            hint = "It is a file in PEM, with the certificate and its key."
            raise ConfigError(setting="AAICLICK_API_CERT", value=str(config.api_cert), rule=rule, hint=hint) from None
    return context


async def _sign_in(calls: Calls, credentials: Credentials, node: NodeDescription) -> None:
    """Find out what the token is; exchange it, if it is one for joining."""
    if credentials.text == credentials.given and not credentials.load():
        if await _is_for_work(calls, credentials):
            return
        locked = credentials.alone()
        await asyncio.to_thread(locked.__enter__)  # another process may be joining, which takes a moment
        try:
            if not credentials.load():
                credentials.take(await _joined(calls, credentials, node))
                return
        finally:
            locked.__exit__(None, None, None)
    try:
        await _is_for_work(calls, credentials)
    except NotAuthenticated:  # the token of the file: it has expired, or was revoked
        if credentials.text == credentials.given:
            raise
        credentials.forget()
        if not await _is_for_work(calls, credentials):
            credentials.take(await _joined(calls, credentials, node))


async def _joined(calls: Calls, credentials: Credentials, node: NodeDescription) -> GivenToken:
    """Exchange the token for joining."""
    asked = Join(node=node, digest=credentials.digest())
    return await calls.ask("join", asked, GivenToken, within_s=SIGN_IN_S_MAX)


async def _is_for_work(calls: Calls, credentials: Credentials) -> bool:
    """Return whether the token is that of a node, and note its life; False if it is for joining."""
    found = await calls.ask("who", Ask(), Identity, within_s=SIGN_IN_S_MAX)
    if found.role != Role.JOIN:
        credentials.note_life(found.lives_s, found.left_s)
    return found.role != Role.JOIN
