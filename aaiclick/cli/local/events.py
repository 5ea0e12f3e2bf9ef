"""What a fleet tells of itself: lines for people on stderr, or one JSON object for each event on stdout."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Protocol

from aaiclick.cli.output import say, show_text

BEGINNING = """\
aaiclick: the local fleet begins; Ctrl-C stops it
  root      {root}
  database  {database}
  data      {data}
  logs      {logs}
  workers   {workers}; tasks at a time in each: {concurrency}
  modules   {modules}
  submit    call a @job function, in Python and with the same settings
  look      aaiclick job list, aaiclick worker list, aaiclick doctor"""

LINES = {
    "begins": BEGINNING,
    "started": "aaiclick: {part} started (process {pid})",
    "said": "{part}: {text}",
    "ended": "aaiclick: {part} {cause} (process {pid})",
    "died": "aaiclick: {part} {cause} (process {pid}); it is started again{when}",
    "up": "aaiclick: all parts are started",
    "stopping": "aaiclick: stopping: the workers finish what they run, for up to {grace_s:g} s; Ctrl-C again stops now",
    "hurrying": "aaiclick: stopping now",
    "stopped": "aaiclick: all parts have ended",
}
"""The events, and what people read of them."""


class Tell(Protocol):
    """Takes an event with its facts."""

    def __call__(self, event: str, /, **facts: object) -> None: ...


def in_lines(event: str, /, **facts: object) -> None:
    """For people. A terminal that has gone away does not end the fleet: its hang-up does."""
    with suppress(OSError):
        say(LINES[event].format_map(facts | {"when": _when(facts.get("again_in_s"))}))


def in_json(event: str, /, **facts: object) -> None:
    """For programs, which read line by line."""
    show_text(json.dumps({"event": event} | facts))
    if sys.stdout is not None:
        sys.stdout.flush()


def _when(pause_s: object) -> str:
    return f" in {pause_s:g} s" if isinstance(pause_s, float) and pause_s else ""
