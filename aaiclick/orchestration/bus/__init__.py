"""Wake-ups between processes. The URL of the state's database selects the implementation."""

from __future__ import annotations

from aaiclick.orchestration.bus.contract import Bus
from aaiclick.orchestration.bus.local import LocalBus
from aaiclick.orchestration.bus.postgres import PostgresBus
from aaiclick.orchestration.bus.sockets import SocketBus
from aaiclick.urls import sqlite_file

__all__ = ["Bus", "open_bus"]


def open_bus(url: str) -> Bus:
    """Return the bus for the database at this URL. Call it on the event loop that will use the bus.

    With PostgreSQL wake-ups reach all processes, with SQLite those of this machine. MariaDB cannot carry them: there,
    and with a database in memory, they stay within the process, and other processes find work at their next poll.
    """
    if url.startswith("postgresql"):
        return PostgresBus(url)
    file = sqlite_file(url)
    if file is None or not file.is_absolute() or ":memory:" in url or "mode=memory" in url:
        return LocalBus(url)
    return SocketBus(url, file.resolve())
