"""Entry point of `python -m aaiclick` and of the command `aaiclick`: prepares the process, then imports the CLI."""

import os
import sys


def _leave_out_current_directory() -> None:
    """Remove the current directory from the head of sys.path, where python -m put it.

    Otherwise a json.py in that directory would be imported instead of the standard library's.
    """
    place = sys.path[0]
    if not sys.flags.safe_path and (not place or (os.path.isdir(".") and os.path.samefile(place, "."))):
        del sys.path[0]


if __name__ == "__main__":
    _leave_out_current_directory()

import atexit  # noqa: E402 (after the path is mended)
import gc  # noqa: E402
import signal  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from itertools import pairwise  # noqa: E402

IMPORTED = 100_000
"""Threshold of the first garbage collection: more objects than the longest imports of a command leave.

A process that goes on working soon reaches it.
"""

SERVING = ("worker", "background", "server", "local")
"""The commands whose `start` runs until a signal ends it."""


def leave_in_order(typed: Sequence[str]) -> None:
    """Make SIGTERM and SIGHUP end a command of SERVING with status 0 until it installs handlers of its own.

    Until then it holds nothing, so it may exit at once, with the status of an orderly end.
    """
    if any(noun in SERVING and verb == "start" for noun, verb in pairwise(typed)):
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, lambda *_: os._exit(0))


def collect_later() -> None:
    """Postpone the first garbage collection until IMPORTED objects exist, then restore the usual thresholds.

    Imported objects stay, and they are most of what a short command makes: collecting among them finds nothing.
    At exit gc is frozen: to tear the remaining objects down takes longer than some commands run.
    """
    usual = gc.get_threshold()
    later = (IMPORTED, *usual[1:])

    def collect_as_ever(phase: str, facts: dict[str, int]) -> None:
        gc.callbacks.remove(collect_as_ever)
        if gc.get_threshold() == later:  # otherwise a worker has set its own thresholds meanwhile
            gc.set_threshold(*usual)

    gc.callbacks.append(collect_as_ever)
    gc.set_threshold(*later)
    atexit.register(gc.freeze)


collect_later()
leave_in_order(sys.argv)  # before the import of the CLI, which takes longer

from aaiclick.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
