"""The command line: it reads what was typed, calls the front door and prints the answer; it decides nothing.

Nothing is imported before it is needed: `aaiclick --help` loads no database library, and no command but the one asked.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from aaiclick import __version__
from aaiclick.cli import errors
from aaiclick.cli.afar import ask_server
from aaiclick.cli.commands import add_all, add_asked
from aaiclick.cli.output import show_text

COMPLETION = "_AAICLICK_COMPLETE"
"""Set by the shell where it asks how a line may go on."""


def _show_version(asked: bool) -> None:
    if asked:
        show_text(f"aaiclick {__version__}")
        raise typer.Exit


def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    api: Annotated[
        str | None, typer.Option(metavar="URL", help="Ask the server there, without a database. As AAICLICK_API_URL.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(help="The token for --api. Others see what is typed: rather set AAICLICK_API_TOKEN."),
    ] = None,
    part_of: Annotated[
        int | None, typer.Option("--part-of", hidden=True, metavar="PID", help="End when this parent process ends.")
    ] = None,
) -> None:
    errors.show_tracebacks(debug)
    ask_server(api, token)
    if part_of is not None:
        from aaiclick.cli.admin.parent_process import become_part_of  # here, to keep start-up light

        become_part_of(part_of)


def main() -> None:
    """The command `aaiclick`: run what was typed and end the process with the exit code of its outcome."""
    atexit.register(errors.end_undisturbed)
    typed = sys.argv[1:] or ["--help"]
    asked = whole_app() if COMPLETION in os.environ else app_for(typed)
    sys.exit(errors.run(lambda: asked(typed, prog_name="aaiclick", standalone_mode=False)))


def whole_app() -> typer.Typer:
    """The command with everything that may be typed."""
    app = _root()
    add_all(app)
    return app


def app_for(typed: Sequence[str]) -> typer.Typer:
    """The command with what was typed; of all else, it knows only what `aaiclick --help` says."""
    app = _root()
    add_asked(app, typed)
    return app


def _root() -> typer.Typer:
    app = typer.Typer(
        name="aaiclick",
        help="Durable, distributed data workflows from plain Python functions.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    return app
