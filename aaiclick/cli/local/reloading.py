"""Which modules have changed: found by looking, since every system tells of it in another way."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator

from aaiclick.errors import InputError

LOOK_EVERY_S = 0.5
FILES_MAX = 10_000
"""So many are looked at twice a second for a small part of a processor."""

SUFFIX = ".py"
LEFT_OUT = frozenset({"__pycache__", "node_modules", "site-packages"})
ENVIRONMENT = "pyvenv.cfg"

Seen = dict[str, tuple[int, int]]
"""For each file its time and its size."""


def check_watched(place: str) -> str:
    """Return the directory; refuse it if it has too many modules to be watched."""
    if len(look_at(place)) >= FILES_MAX:
        hint = "Name the directory of your modules with --app-dir."
        raise InputError(
            field="--reload", value=place, rule=f"{FILES_MAX:,} modules or more are in the directory", hint=hint
        )
    return place


async def changes_in(place: str) -> AsyncIterator[list[str]]:
    """Return the modules that were changed, added or removed, once no more changes follow."""
    known = await asyncio.to_thread(look_at, place)
    while True:
        found = await _look_again(place)
        if found == known:
            continue
        while (later := await _look_again(place)) != found:  # whoever writes many is let finish
            found = later
        changed = sorted(file for file in found.keys() | known.keys() if found.get(file) != known.get(file))
        known = found
        if changed:
            yield changed


async def _look_again(place: str) -> Seen:
    await asyncio.sleep(LOOK_EVERY_S)
    return await asyncio.to_thread(look_at, place)


def look_at(place: str) -> Seen:
    """Return the modules below a directory, up to the limit, by relative path; linked directories are not followed."""
    seen: Seen = {}
    for file in _modules(place):
        try:
            found = os.stat(file)
        except OSError:  # it went away meanwhile, or is a link to nothing
            continue
        seen[os.path.relpath(file, place)] = (found.st_mtime_ns, found.st_size)
        if len(seen) >= FILES_MAX:
            break
    return seen


def _modules(place: str) -> Iterator[str]:
    for directory, below, files in os.walk(place):
        if ENVIRONMENT in files and directory != place:
            below.clear()
            continue
        below[:] = sorted(name for name in below if name not in LEFT_OUT and not name.startswith("."))
        for name in sorted(files):
            if name.endswith(SUFFIX):
                yield os.path.join(directory, name)
