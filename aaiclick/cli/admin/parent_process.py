"""A process that is part of a fleet on one machine: it ends with the process that started it, however that ended."""

from __future__ import annotations

import os
import signal
import sys

from aaiclick.errors import InputError

LINUX = sys.platform == "linux"
PR_SET_PDEATHSIG = 1
STDIN = 0


def become_part_of(parent_pid: int) -> None:
    """End when the parent process ends, and leave the embedded engine to the part of the fleet that serves it."""
    from aaiclick.data.clients.opening import borrow_only  # here, to keep start-up light

    end_with(parent_pid)
    borrow_only(_it_comes_by_itself)


def end_with(parent_pid: int) -> None:
    """Have this process killed when its parent dies: by the kernel on Linux, elsewhere at the end of stdin.

    The children of a worker die with it. A graceful stop would outlive the fleet by the whole grace period.
    """
    if LINUX:
        import ctypes  # here, to keep start-up light

        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    else:
        import threading  # here, to keep start-up light

        threading.Thread(target=_die_at_the_end_of_stdin, daemon=True).start()
    if os.getppid() != parent_pid:  # it may have ended before that
        hint = "Leave it out: only `aaiclick local start` passes it to its parts."
        raise InputError(field="--part-of", value=parent_pid, rule="it is not this process's parent", hint=hint)


def _die_at_the_end_of_stdin() -> None:
    while os.read(STDIN, 4096):
        pass
    os.kill(os.getpid(), signal.SIGKILL)


def _it_comes_by_itself() -> None:
    """The fleet starts its engine again when it has ended: there is nobody to ask."""
