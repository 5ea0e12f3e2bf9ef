"""The client of a process without ClickHouse: its statements go through the servers of its coordinator."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aaiclick.config import settings
from aaiclick.data.clients.answer_streams import with_errors_in_streams
from aaiclick.data.clients.pool import PooledClient, always
from aaiclick.data.clients.servers import ReplicasClient
from aaiclick.server_address import API, Address

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

SCHEME = "coordinator://"

PATH = f"{API}/node/data"


def open_through_coordinators(with_settings: Mapping[str, Any]) -> ReplicasClient:
    """Return a client that asks one of the servers in AAICLICK_COORDINATOR_URL, and the next if that is away."""
    return ReplicasClient([_pooled(url, with_settings) for url in settings().coordinator_urls])


def node_token() -> str:
    """Return the token of this node: AAICLICK_API_TOKEN, or the one that it was given for that, which changes."""
    config = settings()
    name = hashlib.sha256(config.api_token.encode()).hexdigest()[:16]
    try:
        stored = json.loads((config.local_root / "node_tokens" / f"{name}.json").read_bytes())
    except (FileNotFoundError, ValueError):
        return config.api_token
    return str(stored["text"])


def _pooled(url: str, with_settings: Mapping[str, Any]) -> PooledClient:
    server = Address.of(url, "AAICLICK_COORDINATOR_URL")
    where: dict[str, Any] = {
        "interface": "https" if server.secure else "http",
        "host": server.host,
        "port": server.port,
        "proxy_path": f"{server.path}{PATH}",
    }
    if server.secure and (trusted := os.environ.get("SSL_CERT_FILE")):
        where["ca_cert"] = trusted  # as the coordinator's own client does

    def connect() -> Client:
        import clickhouse_connect  # here, to keep start-up light

        return with_errors_in_streams(
            clickhouse_connect.get_client(
                **where,
                token_provider=node_token,
                settings={**with_settings, "cancel_http_queries_on_client_close": 1},
                autogenerate_session_id=False,
            )
        )

    return PooledClient(connect, keep_after_error=always, tagged_by="query_id")
