"""`PUT /api/v1/node/runs/{task}.{epoch}/log`: a node sends the log of a run of its own, piece by piece."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from functools import partial

from starlette.exceptions import HTTPException

from aaiclick.config import settings
from aaiclick.errors import InputError, LogsUnreachable, NotAllowed
from aaiclick.orchestration.coordinator.http.protocol import LOG_PIECE_BYTES_MAX, LogPiece, Written
from aaiclick.orchestration.log_stores.opening import log_store

PATH = re.compile(r"/runs/([0-9]{1,19})\.([0-9]{1,10})/log", re.ASCII)

ROOM_BYTES = 256 * 1024
"""How much longer than AAICLICK_LOG_BYTES_MAX a log may become: its worker adds the end of a long output."""

NOTE_BYTES_MAX = 1000
"""A last piece of this size is taken even behind the limit: it says what is missing."""

WRITES_AT_ONCE = 8

_NUMBER = re.compile("[0-9]{1,19}", re.ASCII)


def piece_of(run: re.Match[str], query: Mapping[str, str], body: bytes) -> LogPiece:
    """Return what a call says; raise InputError if it is not of this form."""
    if len(body) > LOG_PIECE_BYTES_MAX:
        raise HTTPException(413, f"A piece of a log has at most {LOG_PIECE_BYTES_MAX} bytes.")
    for name in ("worker", "offset"):
        if not _NUMBER.fullmatch(query.get(name, "")):
            raise InputError(field=name, value=query.get(name, "")[:100], rule="it must be a whole number", hint="")
    return LogPiece(
        worker=int(query["worker"]),
        task_id=int(run[1]),
        epoch=int(run[2]),
        offset=int(query["offset"]),
        last=query.get("last") == "1",
        data=body,
    )


class LogDesk:
    """Writes pieces of logs to the log store of this server, a few at a time."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(WRITES_AT_ONCE)

    async def write(self, piece: LogPiece) -> Written:
        """Add a piece to its log. It may be repeated. Raises InputError if the log is too long."""
        end, most = piece.offset + len(piece.data), settings().log_bytes_max + ROOM_BYTES
        if end > most and not (piece.last and len(piece.data) <= NOTE_BYTES_MAX):
            rule = f"the log would have more than {most} bytes (AAICLICK_LOG_BYTES_MAX of the server)"
            raise InputError(field="offset", value=piece.offset, rule=rule, hint="")
        write = partial(log_store().write, piece.task_id, piece.epoch, piece.offset, piece.data, last=piece.last)
        async with self._places:
            try:
                return Written(await asyncio.to_thread(write))
            except OSError as error:
                raise LogsUnreachable(place=settings().log_store or str(settings().log_dir), cause=error) from error


def refuse_stranger(piece: LogPiece) -> None:
    """Raise NotAllowed: the run is none of the worker's."""
    cause = f"worker {piece.worker} never ran task {piece.task_id}, epoch {piece.epoch}"
    raise NotAllowed(what="Writing this log", cause=cause, hint="")
