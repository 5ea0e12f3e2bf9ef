"""Open and close the clients of addresses; all callers of one process share one client for each address.

A directory of the embedded engine is owned by one process, which serves it to the others on this machine. When that
process is gone, the next one that needs the engine becomes its owner.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from aaiclick.backend import get_ch_url
from aaiclick.config import settings
from aaiclick.data.clients.answer_streams import with_errors_in_streams
from aaiclick.data.clients.contract import DataClient
from aaiclick.data.clients.local import LocalClient
from aaiclick.data.clients.pool import THREADS, PooledClient, always, once_clean
from aaiclick.data.clients.servers import open_servers
from aaiclick.data.embedded.directory_lock import Endpoint, find_gateway, refuse_foreign
from aaiclick.errors import DataUnreachable
from aaiclick.module_path import our_python

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

SETTINGS = {
    "session_timezone": "UTC",  # a naive time is the same wherever the process or the server runs
    "join_use_nulls": 1,  # a row without a match is joined with NULLs, not with zeros and empty texts
    "compile_expressions": 0,  # an expression is compiled from its fourth run on, and then loses checks of its range
    "use_variant_as_common_type": 0,  # numbers and texts in one column are refused
    "query_plan_execute_functions_after_sorting": 0,  # with it, some sorted queries are refused (code 572)
    "max_query_size": 256 * 1024 * 1024,  # long texts and lists may stand in a query
    "max_ast_elements": 5_000_000,
}

STARTING_S_MAX = 30.0
IDLE_EXIT_S = 60
ASK_EVERY_S = 1.0
"""How often an owner is asked for: one that is about to exit may still run then, so that no other is started."""

_TRANSPORT = "clickhouse_connect.driver._backend.http_sync"

_lock = threading.Lock()
_shared: dict[str, _Shared] = {}
_ask_for_owner: Callable[[], None] | None = None
_kept_open = 0
_started: dict[str, subprocess.Popen[bytes]] = {}
"""The owners that this process started, by address: an owner serves its own installation only."""


@dataclass
class _Shared:
    client: LocalClient | PooledClient
    users: int


def borrow_only(ask_for_owner: Callable[[], None]) -> None:
    """Forbid this process to own the engine, as it may be killed at any time; it asks for another owner instead."""
    global _ask_for_owner
    _ask_for_owner = ask_for_owner


async def open_client(url: str) -> DataClient:
    """Return the client for an address; call `close_client` once for each call."""
    found = _open_again(url)
    return await asyncio.to_thread(_open, url) if found is None else found


def _open_again(url: str) -> DataClient | None:
    """Return the client if it is open; None if it is not, or while another thread opens or closes one."""
    if not _lock.acquire(blocking=False):
        return None
    try:
        found = _shared.get(url)
        if found is None:
            return None
        found.users += 1
        return found.client
    finally:
        _lock.release()


def _open(url: str) -> DataClient:
    with _lock:  # one at a time: two threads that start the same engine would hinder each other
        if url not in _shared:
            _shared[url] = _Shared(_connect(url), 0)
        _shared[url].users += 1
        return _shared[url].client


async def close_client(url: str) -> None:
    """Release a client; the last release closes it."""
    if not _close_later(url):
        await asyncio.to_thread(_close, url)


def _close_later(url: str) -> bool:
    """Release a client that stays open; return False if it does not, or while another thread opens or closes one."""
    if not _lock.acquire(blocking=False):
        return False
    try:
        found = _shared[url]
        stays = found.users > 1 or _stay_open()
        found.users -= stays
        return stays
    finally:
        _lock.release()


@asynccontextmanager
async def kept_open() -> AsyncIterator[None]:
    """Keep unused clients open inside the block, for the next caller."""
    await asyncio.to_thread(_keep_open, 1)
    try:
        yield
    finally:
        await asyncio.to_thread(_keep_open, -1)


def _keep_open(more: int) -> None:
    global _kept_open
    with _lock:
        _kept_open += more
        _close_unused()


def _close(url: str) -> None:
    with _lock:
        _shared[url].users -= 1
        _close_unused()


def _close_unused() -> None:
    if _stay_open():
        return
    for url in [url for url, found in _shared.items() if not found.users]:
        _shared.pop(url).client.close_now()


def _stay_open() -> bool:
    """Return whether unused clients stay open. A child process keeps them: it needs them again, and exits abruptly."""
    return bool(_kept_open) or _ask_for_owner is not None


def _connect(url: str) -> LocalClient | PooledClient:
    if url.startswith("coordinator:"):
        from aaiclick.data.clients.coordinators import open_through_coordinators  # here: only nodes need it

        return open_through_coordinators(SETTINGS)
    if not url.startswith("chdb://"):
        return open_servers(url, settings().ch_cluster if url == get_ch_url() else "", SETTINGS)
    directory = Path(url.removeprefix("chdb://"))
    client = LocalClient(lambda: _open_directory(directory))
    client.open()
    return client


# ---------------------------------------------------------------- a directory of this machine


def _open_directory(directory: Path) -> tuple[PooledClient, Callable[[], None]]:
    """Return a client of a directory's engine, and a function that releases what it needed.

    This process becomes the owner if it may and there is none; else the client uses the gateway of the owner.
    """
    from aaiclick.data.gateway import serve_directory  # here, to keep start-up light

    refuse_foreign(directory)
    deadline = time.monotonic() + STARTING_S_MAX
    while time.monotonic() < deadline:
        serving = None if _ask_for_owner is not None else serve_directory(directory)
        if serving is not None:
            return _embedded(serving.engine.directory, serving.engine.query_settings), serving.close
        endpoint = find_gateway(directory, STARTING_S_MAX) or _asked_for(directory)
        if endpoint is not None:
            return _borrow(endpoint), _nothing
    raise DataUnreachable(cause=f"the engine for {directory} did not start")


def _asked_for(directory: Path) -> Endpoint | None:
    """Return the gateway of an owner that this process asks for; None if it may not ask, or none starts in time."""
    if _ask_for_owner is None:
        return None
    deadline = time.monotonic() + STARTING_S_MAX
    while time.monotonic() < deadline:
        _ask_for_owner()
        if (endpoint := find_gateway(directory, ASK_EVERY_S, expected=True)) is not None:
            return endpoint
    return None


def _embedded(directory: Path, spilling: Mapping[str, int]) -> PooledClient:
    def connect() -> Client:
        import clickhouse_connect  # here, to keep start-up light

        return clickhouse_connect.get_client(dsn=f"chdb://{directory}", settings={**SETTINGS, **spilling})

    return PooledClient(connect, keep_after_error=once_clean)


def _borrow(endpoint: Endpoint) -> PooledClient:
    """Return a client of the gateway, over its socket file, or over its port if it has none."""
    parts = urlsplit(endpoint.url)
    logging.getLogger(_TRANSPORT).addFilter(_is_news)

    def connect() -> Client:
        import clickhouse_connect  # here, to keep start-up light

        from aaiclick.data.clients.unix_socket import pool_of  # here, to keep start-up light

        where: dict[str, Any] = {"host": parts.hostname, "port": parts.port}
        if endpoint.socket is not None:
            where = {"host": "localhost", "port": 80, "pool_mgr": pool_of(endpoint.socket)}
        return with_errors_in_streams(
            clickhouse_connect.get_client(
                **where,
                username=endpoint.user,
                password=endpoint.password,
                settings={**SETTINGS, "cancel_http_queries_on_client_close": 1},
                autogenerate_session_id=False,
                compress=False,
            )
        )

    return PooledClient(connect, keep_after_error=always, tagged_by="query_id")


def _is_news(record: logging.LogRecord) -> bool:
    """Filter the driver's log: drop messages that an owner is gone; a caller gets an error if there is no other."""
    return not ((record.threadName or "").startswith(THREADS) and record.msg == "Unexpected Http Driver Exception")


def start_owner() -> None:
    """Start a process that owns and serves this installation's engine, and exits when it is not asked for IDLE_EXIT_S.

    Nothing happens while a process that was started here still runs.
    """
    if _ask_for_owner is not None:  # this process may only ask, for its children too
        _ask_for_owner()
        return
    address = get_ch_url()
    before = _started.get(address)
    if before is not None and before.poll() is None:
        return
    _started[address] = subprocess.Popen(  # noqa: S603 (our own command)
        our_python("aaiclick", "data", "serve", "--idle-exit", str(IDLE_EXIT_S)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _nothing() -> None:
    """Release nothing: the engine belongs to another process."""


def _in_a_copy() -> None:
    """Make the state usable after a fork: the thread that held the lock does not exist in the child."""
    global _lock
    _lock = threading.Lock()
    for found in _shared.values():
        found.client.become_copy()


os.register_at_fork(after_in_child=_in_a_copy)
