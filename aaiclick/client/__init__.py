"""The client of the server: everything that REST offers, as typed methods, without a database on this machine.

`APIClient` blocks, `AsyncAPIClient` is for event loops; both have the same methods and use only the standard library.
"""

from aaiclick.client.api_client import APIClient
from aaiclick.client.async_api_client import AsyncAPIClient

__all__ = ["APIClient", "AsyncAPIClient"]
