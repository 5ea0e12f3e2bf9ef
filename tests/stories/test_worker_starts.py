"""SIGTERM reaches processes that are still starting, wherever they are: they end in order, and say nothing."""

from __future__ import annotations

import pytest

from tests.support.fleet import LONG, Fleet, fleet

__all__ = ["fleet"]

ENDED_AT = """
import os, runpy, signal, sys
event, word, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
seen = 0

def hook(name, args):
    global seen
    if name == event and word in repr(args):
        seen += 1
        if seen == number:
            os.kill(os.getpid(), signal.SIGTERM)

sys.argv = ["aaiclick", *sys.argv[4:]]
sys.addaudithook(hook)
runpy.run_module("aaiclick", run_name="__main__")
"""
"""The command, which is sent SIGTERM when it does this for the so-many-th time."""

MOMENTS = {
    "our first import": ("import", "'aaiclick.cli'", 1),
    "the last of start-up's": ("import", "'aaiclick.orchestration.launchers.worker_main'", 1),
    "connecting": ("sqlite3.connect", "", 2),
    "starting the nursery": ("subprocess.Popen", "nursery", 1),
}
MORE = {
    "a library's import": ("import", "'typer'", 1),
    "the database's import": ("import", "'sqlalchemy'", 1),
    "looking at the schema": ("sqlite3.connect", "", 1),
    "the sockets of the loop": ("socket.__new__", "", 1),
}


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
@pytest.mark.parametrize("moment", [*MOMENTS, *(MORE if LONG else ())])
async def test_a_worker_that_is_still_starting(fleet: Fleet, moment: str) -> None:
    event, word, number = (MOMENTS | MORE)[moment]
    worker = fleet.start("worker", "start", program=("-c", ENDED_AT, event, word, str(number)))
    assert (await worker.ended(), worker.said()) == (0, "")


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
async def test_the_control_loop_that_is_still_starting(fleet: Fleet) -> None:
    program = ("-c", ENDED_AT, "sqlite3.connect", "", "1")
    background = fleet.start("background", "start", program=program)
    assert (await background.ended(), background.said()) == (0, "")
