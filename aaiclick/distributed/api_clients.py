"""The client by the arguments of the design; `aaiclick.client` has the same class under its own."""

from __future__ import annotations

from typing import Any

from aaiclick.client import AsyncAPIClient


class APIClient(AsyncAPIClient):
    """Asks the server at `coordinator_url`; all methods are coroutines or asynchronous iterators."""

    def __init__(self, coordinator_url: str | None = None, token: str | None = None, **options: Any) -> None:
        super().__init__(coordinator_url, token, **options)
