"""`python -m aaiclick` is the command `aaiclick`."""

import os
import sys


def _leave_out_current_directory() -> None:
    """python -m has put it before everything else: a json.py in it would be taken for Python's own."""
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
"""More objects than the longest imports of a command leave; whoever goes on working makes as many in no time."""

SERVING = ("worker", "background", "server", "local")
"""What runs until it is told to end."""


def leave_in_order(typed: Sequence[str]) -> None:
    """Until such a command has begun, it holds nothing: told to end meanwhile, it is done, as it would be later."""
    if any(noun in SERVING and verb == "start" for noun, verb in pairwise(typed)):
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, lambda *_: os._exit(0))


def collect_later() -> None:
    """Look for garbage once so many objects are there, then as ever: what is imported stays, and is most of a command.

    What has not become garbage by the end is left to the system: to take it apart takes longer than some commands.
    """
    usual = gc.get_threshold()
    later = (IMPORTED, *usual[1:])

    def collect_as_ever(phase: str, facts: dict[str, int]) -> None:
        gc.callbacks.remove(collect_as_ever)
        if gc.get_threshold() == later:  # else a worker has set its own meanwhile
            gc.set_threshold(*usual)

    gc.callbacks.append(collect_as_ever)
    gc.set_threshold(*later)
    atexit.register(gc.freeze)


collect_later()
leave_in_order(sys.argv)  # before what takes longer: to import the rest

from aaiclick.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
