"""How a command ends: its exit code, and one line on stderr when something went wrong."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from typing import TextIO

import typer

from aaiclick.cli.output import printable, say
from aaiclick.errors import AaiclickError

WRONG_USE = 2
UNEXPECTED = 70
"""A fault of ours, as sysexits.h numbers it: no outcome that a script may count on."""
INTERRUPTED = 130
SAID_INTERRUPTED = "aaiclick: interrupted"
PIPE_CLOSED = 141
"""The exit code of a process that SIGPIPE ended: the reader of the output has closed it."""
UNWRITTEN = 74
"""The output cannot be written, as on a full disk: as sysexits.h numbers it."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

_tracebacks = False


def show_tracebacks(wanted: bool) -> None:
    """Whether an error also shows where it came from."""
    global _tracebacks
    _tracebacks = wanted


def run(command: Callable[[], object]) -> int:
    """Run a command and return the exit code."""
    show_tracebacks(False)
    _accept_any_character()
    try:
        code = command()
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _leave(sys.stdout)
        return PIPE_CLOSED
    except (KeyboardInterrupt, typer.Abort):
        _tell(SAID_INTERRUPTED)
        return INTERRUPTED
    except SystemExit as left:  # what typer makes of a pipe that is closed while a command writes to it
        if not isinstance(left.__context__, BrokenPipeError):
            raise
        _leave(sys.stdout)
        return PIPE_CLOSED
    except Exception as error:
        return _report(error)
    if code == INTERRUPTED:  # what typer makes of Ctrl-C
        _tell(SAID_INTERRUPTED)
    return code if isinstance(code, int) else 0


def end_undisturbed() -> None:
    """From here on Ctrl-C is not heard: while Python ends, it would kill, and what was decided would be lost."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _report(error: Exception) -> int:
    if _tracebacks:
        import traceback  # only who asks for it pays for loading it

        _tell("".join(traceback.format_exception(error)).rstrip())
    said, code = _explain(error)
    if code == UNWRITTEN:
        _leave(sys.stdout)
    _tell(f"aaiclick: {said}")
    return code


def _tell(text: str) -> None:
    """The last words. Where nobody hears them, the exit code still says it."""
    try:
        say(text)
    except OSError:
        _leave(sys.stderr)


def _explain(error: Exception) -> tuple[str, int]:
    """One line, and the exit code."""
    if isinstance(error, AaiclickError):
        return _one_line(str(error)), error.exit_code
    # what the parser of the command line raises: its class has moved between versions of typer
    format_message = getattr(error, "format_message", None)
    if format_message is not None:
        return _one_line(format_message()) + _hint(getattr(error, "ctx", None)), WRONG_USE
    if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
        return f"The output cannot be written: {error.strerror}", UNWRITTEN
    return (
        f"{type(error).__name__}: {_one_line(str(error))} (a bug in aaiclick; --debug shows the traceback)",
        UNEXPECTED,
    )


def _hint(context: typer.Context | None) -> str:
    return f" (try: {context.command_path} --help)" if context else ""


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _accept_any_character() -> None:
    """A terminal that cannot show a character gets its number instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _leave(stream: TextIO | None) -> None:
    """Python flushes its streams once more at its end, which would fail again."""
    if stream is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
