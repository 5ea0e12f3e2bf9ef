"""The client for event loops."""

from __future__ import annotations

from ssl import SSLContext
from typing import Self

from aaiclick.client.calls import Calls
from aaiclick.client.networks import LoopNetwork, Network
from aaiclick.client.verbs.cache import CacheVerbs
from aaiclick.client.verbs.catalogue import CatalogueVerbs
from aaiclick.client.verbs.events import EventVerbs
from aaiclick.client.verbs.fleet import FleetVerbs
from aaiclick.client.verbs.logs import LogVerbs
from aaiclick.client.verbs.nodes import NodeVerbs
from aaiclick.client.verbs.objects import ObjectVerbs
from aaiclick.client.verbs.resources import ResourceVerbs
from aaiclick.config import settings
from aaiclick.errors import InputError


class AsyncAPIClient(
    EventVerbs, LogVerbs, CatalogueVerbs, CacheVerbs, FleetVerbs, NodeVerbs, ResourceVerbs, ObjectVerbs
):
    """Asks a server; all methods are coroutines or asynchronous iterators."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        verify: bool | str | SSLContext = True,
        timeout_s: float = 30.0,
        retries: int = 3,
        network: Network | None = None,
    ) -> None:
        """Without `url` or `token`, those of AAICLICK_API_URL and AAICLICK_API_TOKEN are taken. Nothing is sent yet.

        `verify`: a file of certificates that are trusted besides, an SSLContext, or False for no check. `timeout_s`:
        how long one connect, send or receive may take. `retries`: how often a request that may be repeated is.
        """
        address = settings().api_url if url is None else url
        if not address:
            raise InputError(
                field="url", value="nothing", rule="it is needed", hint="Give it, or set AAICLICK_API_URL."
            )
        secret = settings().api_token if token is None else token
        self._calls = Calls(
            network or LoopNetwork(), address, secret, verify=verify, timeout_s=timeout_s, retries=retries
        )

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._calls.address.url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        self._calls.close()
