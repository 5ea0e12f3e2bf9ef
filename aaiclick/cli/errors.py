"""How a command ends: its exit code, and one line on stderr when something went wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import typer

from aaiclick.cli.output import printable, say
from aaiclick.errors import AaiclickError

WRONG_USE = 2
UNEXPECTED = 70
"""A fault of ours, as sysexits.h numbers it: no outcome that a script may count on."""
INTERRUPTED = 130
PIPE_CLOSED = 141
"""What a process ended by SIGPIPE leaves: whoever read our output has seen enough."""

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
        _leave_stdout()
        return PIPE_CLOSED
    except (KeyboardInterrupt, typer.Abort):
        say("aaiclick: interrupted")
        return INTERRUPTED
    except Exception as error:
        return _report(error)
    return code if isinstance(code, int) else 0


def _report(error: Exception) -> int:
    if _tracebacks:
        import traceback  # only who asks for it pays for loading it

        say("".join(traceback.format_exception(error)).rstrip())
    said, code = _explain(error)
    say(f"aaiclick: {said}")
    return code


def _explain(error: Exception) -> tuple[str, int]:
    """One line, and the exit code."""
    if isinstance(error, AaiclickError):
        return _one_line(str(error)), error.exit_code
    # what the parser of the command line raises: its class has moved between versions of typer
    format_message = getattr(error, "format_message", None)
    if format_message is not None:
        return _one_line(format_message()) + _hint(getattr(error, "ctx", None)), WRONG_USE
    return f"{type(error).__name__}: {_one_line(str(error))} (a fault of aaiclick; see it with --debug)", UNEXPECTED


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


def _leave_stdout() -> None:
    """Python flushes stdout once more at its end, which would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
