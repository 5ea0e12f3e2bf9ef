"""Where a worker sends its logs: to the log store, or to the server that it works for."""

from __future__ import annotations

import asyncio
from typing import Protocol

from aaiclick.orchestration.coordinator.http.calls import Calls
from aaiclick.orchestration.coordinator.http.protocol import LOG_PIECE_BYTES_MAX, LogPiece, Written
from aaiclick.orchestration.execution.logs.spool import Shipment
from aaiclick.orchestration.log_stores.contract import LogStore

__all__ = ["LOG_PIECE_BYTES_MAX", "LogTarget", "ServerTarget", "StoreTarget"]


class LogTarget(Protocol):
    """The way to the logs' home."""

    async def write(self, shipment: Shipment, offset: int, data: bytes, *, last: bool) -> int:
        """Send bytes of a log, and return how many bytes it has there. See `LogStore.write`."""

    def place_of(self, shipment: Shipment) -> str:
        """Return where the log can be found, for people."""

    def close(self) -> None:
        """Close the connections."""


class StoreTarget:
    """Implements `LogTarget` on a log store."""

    def __init__(self, store: LogStore) -> None:
        self.store = store

    async def write(self, shipment: Shipment, offset: int, data: bytes, *, last: bool) -> int:
        return await asyncio.to_thread(self.store.write, *shipment.run, offset, data, last=last)

    def place_of(self, shipment: Shipment) -> str:
        return self.store.place_of(*shipment.run)

    def close(self) -> None:
        pass


class ServerTarget:
    """Implements `LogTarget` on the servers of a coordinator."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    async def write(self, shipment: Shipment, offset: int, data: bytes, *, last: bool) -> int:
        task_id, epoch = shipment.run
        piece = LogPiece(worker=shipment.worker_id, task_id=task_id, epoch=epoch, offset=offset, last=last, data=data)
        return (await self.calls.ask("log", piece, Written)).size

    def place_of(self, shipment: Shipment) -> str:
        return shipment.path  # the server knows the place, and puts it into the report

    def close(self) -> None:
        self.calls.close()
