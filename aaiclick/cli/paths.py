"""Where the modules with the tasks are: as `python -m` would find them."""

from __future__ import annotations

import os
import sys

from aaiclick.errors import InputError


def find_modules_in(app_dir: str | None) -> str:
    """Let this process import from that directory, the current one by default; gives its whole path."""
    try:
        place = os.path.abspath(app_dir or os.getcwd())
    except OSError:
        hint = "Change to one that exists, or name it with --app-dir."
        raise InputError(field="directory", value=".", rule="the current directory does not exist", hint=hint) from None
    if not os.path.isdir(place):
        raise InputError(field="--app-dir", value=app_dir, rule="there is no such directory", hint="")
    if place not in sys.path[:1]:
        sys.path.insert(0, place)
    return place
