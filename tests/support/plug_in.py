"""A distribution with a plug-in executor, installed as an installer would: files and metadata in a directory."""

from __future__ import annotations

from pathlib import Path

SOURCE = '''
"""An executor of others: it does what its options say."""

import asyncio
import os
import pathlib


async def run(*, value=None, text="", error="", hangs="", key_to=""):
    if text:
        print(text, flush=True)
    if key_to:
        from aaiclick import get_current_run

        with open(key_to, "a") as file:
            file.write(get_current_run().idempotency_key + "\\n")
    if error:
        raise ValueError(error)
    if hangs:
        pathlib.Path(hangs).write_text("begun")
        try:
            await asyncio.Event().wait()
        finally:
            pathlib.Path(hangs).write_text("over")
    return value


def broken() -> None:
    raise AssertionError


NO_FUNCTION = 3
'''
ENTRIES = """[aaiclick.executors]
sample = sample_plug_in:run
number = sample_plug_in:NO_FUNCTION
missing = sample_plug_in_that_is_gone:run
shell = sample_plug_in:broken
"""


def install(place: Path) -> Path:
    """Install it; the directory must be on the path."""
    (place / "sample_plug_in.py").write_text(SOURCE)
    facts = place / "sample_plug_in-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: sample-plug-in\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(ENTRIES)
    (facts / "RECORD").write_text("")
    return place
