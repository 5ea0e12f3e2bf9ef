"""What a fleet tells of itself: lines for people on stderr, or one JSON object for each event on stdout."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Protocol

from aaiclick.cli.output import printable, say, show_text

BEGINNING = """\
aaiclick: the local fleet begins{beside}; Ctrl-C stops it
  root      {root}
  database  {database}
  data      {data}
  logs      {logs}
  workers   {workers}; tasks at a time in each: {concurrency}
  modules   {modules}
  server    {server}
  submit    call a @job function, in Python and with the same settings
  look      aaiclick job list, aaiclick worker list, aaiclick doctor"""

LINES = {
    "begins": BEGINNING,
    "started": "aaiclick: {part} started (process {pid})",
    "said": "{part}: {text}",
    "ended": "aaiclick: {part} {cause} (process {pid})",
    "died": "aaiclick: {part} {cause} (process {pid}); it is started again{when}",
    "renewed": "aaiclick: {part} {cause} (process {pid}); it is restarted",
    "reloading": "aaiclick: changed: {files}; the workers finish their tasks and are restarted",
    "up": "aaiclick: all parts are started",
    "stopping": "aaiclick: stopping: the workers finish their tasks, for up to {grace_s:g} s; Ctrl-C again stops now",
    "inherits": "aaiclick: the other fleet has ended; its server is started here, at {server}",
    "hurrying": "aaiclick: stopping now",
    "stopped": "aaiclick: all parts have ended",
}
"""The events, and what people read of them."""


class Tell(Protocol):
    """Takes an event with its facts."""

    def __call__(self, event: str, /, **facts: object) -> None: ...


def in_lines(event: str, /, **facts: object) -> None:
    """Print events as lines for people. A closed terminal ends the fleet by its hang-up signal only."""
    with suppress(OSError):
        say(LINES[event].format_map(facts | _in_words(facts)))


def in_json(event: str, /, **facts: object) -> None:
    """Print events as lines of JSON for programs."""
    show_text(json.dumps({"event": event} | facts))
    if sys.stdout is not None:
        sys.stdout.flush()


def _in_words(facts: dict[str, object]) -> dict[str, str]:
    """What people read in the place of some facts."""
    return {
        "when": _when(facts.get("again_in_s")),
        "beside": _beside(facts),
        "server": _server(facts),
        "files": _files(facts.get("files"), facts.get("count")),
    }


def _beside(facts: dict[str, object]) -> str:
    if "beside" not in facts:
        return ""
    holder = f"process {facts['beside']}" if facts["beside"] else "a process that is still starting"
    return f" beside that of {holder}, which keeps running"


def _server(facts: dict[str, object]) -> str:
    where, token_file, other = facts.get("server"), facts.get("token_file"), facts.get("server_beside")
    if "root" not in facts:  # it is told alone
        return str(where)
    if where is None and "beside" in facts:
        return f"that of the other fleet{f', {other}' if other else ''}; when that fleet ends, a server is started here"
    if where is None:
        return "none; it comes with: pip install 'aaiclick[server]'"
    made = f"in {token_file} (an admin's)" if token_file else "one of yours, or: aaiclick token create NAME"
    return f"{where}\n  token     {made}"


def _files(named: object, count: object) -> str:
    names = list(map(str, named)) if isinstance(named, list) else []
    more = count - len(names) if isinstance(count, int) else 0
    return printable(", ".join(names)) + (f" and {more} more" if more else "")


def _when(pause_s: object) -> str:
    return f" in {pause_s:g} s" if isinstance(pause_s, float) and pause_s else ""
