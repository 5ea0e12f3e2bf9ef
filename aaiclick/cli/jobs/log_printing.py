"""Pieces of logs as they are printed.

A terminal gets control codes as escapes, so that a log cannot steer it. Files and pipes get the bytes as they are.
"""

from __future__ import annotations

import sys
from typing import Any

from aaiclick.cli.output import harmless, is_terminal, printable, show_json, show_text

NOTHING_HERE = "nothing was written yet, or the log is not in this log store"


class Printer:
    """Writes pieces of logs: unchanged, escaped on a terminal, or each as a line of JSON."""

    def __init__(self, as_json: bool) -> None:
        self.wrote = False
        self._as_json = as_json
        self._is_terminal = is_terminal()
        self._task: int | None = None
        self._mid_line = False
        self._halves: dict[int, bytes] = {}

    def write(self, data: bytes, task_id: int, task: Any = None) -> None:
        """Write a piece of a task's log; if the task changes, under a line that names it."""
        if not data:
            return
        self.wrote = True
        if self._as_json:
            self._tell(task_id, self._decode(data, task_id), task)
        else:
            if task is not None and task_id != self._task:
                self._begin(task)
            self._put(data, task_id)
        self._task = task_id
        if sys.stdout is not None:
            sys.stdout.flush()

    def _tell(self, task_id: int, text: str, task: Any = None) -> None:
        from aaiclick.representations.logs import log_piece  # here, to keep start-up light

        show_json(log_piece(task_id, text, task))

    def _begin(self, task: Any) -> None:
        if self._mid_line:
            show_text("")
        if self._task is not None:
            show_text("")
        show_text(f"==> {printable(task.name)} ({task.id}, {task.status}) <==")

    def _put(self, data: bytes, task_id: int) -> None:
        self._mid_line = not data.endswith(b"\n")
        raw = getattr(sys.stdout, "buffer", None)
        if raw is not None and not self._is_terminal:
            sys.stdout.flush()
            raw.write(data)
        elif sys.stdout is not None:
            sys.stdout.write(harmless(self._decode(data, task_id)))

    def _decode(self, data: bytes, task_id: int) -> str:
        """As text; a character that is cut off waits for its other half."""
        data, self._halves[task_id] = _whole_characters(self._halves.pop(task_id, b"") + data)
        return data.decode(errors="replace")

    def finish(self) -> None:
        """Write the remaining bytes of incomplete characters, as broken characters."""
        for task_id, half in self._halves.items():
            if half and self._as_json:
                self._tell(task_id, half.decode(errors="replace"))
            elif half:
                sys.stdout.write(half.decode(errors="replace"))
        self._halves.clear()


def _whole_characters(data: bytes) -> tuple[bytes, bytes]:
    """The data without a character of UTF-8 that is cut off at its end, and that."""
    for length in range(1, min(4, len(data)) + 1):
        byte = data[-length]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return (data[:-length], data[-length:]) if length < needed else (data, b"")
        if byte < 0x80:
            break
    return data, b""
