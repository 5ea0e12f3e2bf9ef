"""Wake-ups between processes: which way they go follows from where the state is kept."""

from __future__ import annotations

from aaiclick.orchestration.bus.contract import Bus
from aaiclick.orchestration.bus.local import LocalBus
from aaiclick.orchestration.bus.postgres import PostgresBus
from aaiclick.orchestration.bus.sockets import SocketBus
from aaiclick.urls import sqlite_file

__all__ = ["Bus", "open_bus"]


def open_bus(url: str) -> Bus:
    """The bus of those who keep their state at this URL, for the event loop that calls this.

    PostgreSQL carries wake-ups to all processes, SQLite to those of this machine. MariaDB has no way to: there, and for
    a database in memory, they stay within the process, and the others find out when they next look.
    """
    if url.startswith("postgresql"):
        return PostgresBus(url)
    file = sqlite_file(url)
    if file is None or not file.is_absolute() or ":memory:" in url or "mode=memory" in url:
        return LocalBus(url)
    return SocketBus(url, file.resolve())
