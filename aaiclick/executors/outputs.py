"""The output of commands: written to the log of the run, and the part of it that is the result."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Literal

from aaiclick.config import settings
from aaiclick.errors import CommandFailed, CommandFailedForGood, ValueTooLarge

ResultOf = Literal["last_line", "output", "json", "json_line", "none"]

LINE_BYTES_MAX = 1_000_000
"""The longest last line that is a result; of a longer one, its end is."""


class Output:
    """Writes the output of a command to the log of the run, and keeps what its result is made of."""

    def __init__(self, wanted: ResultOf) -> None:
        self._wanted = wanted
        self._kept = bytearray()
        self._size = 0

    def take(self, chunk: bytes) -> None:
        write_log(sys.stdout, chunk)
        if self._wanted in ("output", "json"):
            self._size += len(chunk)
            if self._size <= settings().blob_bytes_max:
                self._kept += chunk
        elif self._wanted != "none":
            self._kept += chunk
            _leave_last_lines(self._kept)

    def result(self) -> object:
        limit = settings().blob_bytes_max
        if self._size > limit:
            what, setting = "the output of the command", "AAICLICK_BLOB_BYTES_MAX"
            raise ValueTooLarge(path=what, size=self._size, limit=limit, setting=setting)
        if self._wanted == "none":
            return None
        text = self._kept.decode(errors="backslashreplace")
        if self._wanted in ("last_line", "json_line"):
            text = text.rstrip("\r\n").rpartition("\n")[2].rstrip("\r")
        return _read_json(text, "its output") if self._wanted in ("json", "json_line") else text


def _leave_last_lines(kept: bytearray) -> None:
    """Leave the last line, with what follows it: that may be the beginning of the next, or empty."""
    begins = kept.rstrip(b"\r\n").rfind(b"\n") + 1
    del kept[: max(begins, len(kept) - LINE_BYTES_MAX)]


def result_in(path: Path, wanted: ResultOf) -> object:
    """Return the result that a command has left in a file."""
    limit = settings().blob_bytes_max
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        cause = f"left no file {path.name} that can be read: {error.strerror}"
        raise CommandFailed(command="of the task", cause=cause, hint="", code=0) from error
    if len(data) > limit:
        raise ValueTooLarge(path=path.name, size=len(data), limit=limit, setting="AAICLICK_BLOB_BYTES_MAX")
    text = data.decode(errors="backslashreplace")
    return _read_json(text, path.name) if wanted in ("json", "json_line") else text


def _read_json(text: str, where: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        cause = f"succeeded, but {where} is no JSON: {error}"
        hint = 'Choose another result, such as "last_line".'
        raise CommandFailedForGood(command="of the task", cause=cause, hint=hint, code=0) from error


def write_log(stream: Any, chunk: bytes) -> None:
    """Write bytes to a stream of the run's."""
    buffer = getattr(stream, "buffer", None)
    if buffer is None:
        stream.write(chunk.decode(errors="backslashreplace"))
    else:
        stream.flush()
        buffer.write(chunk)
        buffer.flush()
