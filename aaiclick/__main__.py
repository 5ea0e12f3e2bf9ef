"""`python -m aaiclick` is the command `aaiclick`."""

import os
import signal
import sys
from collections.abc import Sequence
from itertools import pairwise

SERVING = ("worker", "background", "server", "local")
"""What runs until it is told to end."""


def leave_in_order(typed: Sequence[str]) -> None:
    """Until such a command has begun, it holds nothing: told to end meanwhile, it is done, as it would be later."""
    if any(noun in SERVING and verb == "start" for noun, verb in pairwise(typed)):
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, lambda *_: os._exit(0))


leave_in_order(sys.argv)  # before what takes longer: to import the rest

from aaiclick.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
