"""Where the modules with the tasks are."""

from __future__ import annotations

import os

from aaiclick.errors import InputError
from aaiclick.module_path import search_in


def find_modules_in(app_dir: str | None) -> str:
    """Add the directory, by default the current one, to the end of the import path; return its path."""
    try:
        place = os.path.abspath(app_dir or os.getcwd())
    except OSError:
        hint = "Change to an existing directory, or name one with --app-dir."
        raise InputError(field="directory", value=".", rule="the current directory does not exist", hint=hint) from None
    if not os.path.isdir(place):
        raise InputError(field="--app-dir", value=app_dir, rule="the directory does not exist", hint="")
    search_in(place)
    return place
