"""Wake-ups between processes. AAICLICK_REDIS_URL or the URL of the state's database selects the implementation."""

from __future__ import annotations

from aaiclick.config import settings
from aaiclick.orchestration.bus.contract import Bus
from aaiclick.orchestration.bus.local import LocalBus
from aaiclick.orchestration.bus.sockets import SocketBus
from aaiclick.urls import sqlite_file

__all__ = ["Bus", "open_bus"]


def open_bus(url: str) -> Bus:
    """Return the bus for the database at this URL. Call it on the event loop that will use the bus.

    With a Redis, wake-ups reach all processes that use the same one. Without it, PostgreSQL carries them to all
    processes, and SQLite to those of this machine. MariaDB cannot: there, and with a database in memory, they stay
    within the process, and other processes find work at their next poll.
    """
    if settings().redis_url:
        from aaiclick.orchestration.bus.redis import RedisBus  # here, to keep start-up light

        return RedisBus(url, settings().redis_url, settings().redis_prefix)
    if url.startswith("postgresql"):
        from aaiclick.orchestration.bus.postgres import PostgresBus  # here, for the same reason

        return PostgresBus(url)
    file = sqlite_file(url)
    if file is None or not file.is_absolute() or ":memory:" in url or "mode=memory" in url:
        return LocalBus(url)
    return SocketBus(url, file.resolve())
