"""`aaiclick data`: Objects, and the embedded data engine, served to the other processes of this machine."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aaiclick.cli.admin import objects
from aaiclick.cli.output import say

if TYPE_CHECKING:
    from aaiclick.data.gateway import Gateway, Serving

LOOK_EVERY_S = 0.5
SIGNALS = (signal.SIGTERM, signal.SIGINT)

app = typer.Typer(rich_markup_mode=None)
app.command("list")(objects.list_)
app.command("show")(objects.show)
app.command("query")(objects.query)
app.command("versions")(objects.versions)
app.command("rollback")(objects.rollback)
app.command("delete")(objects.delete)


@app.command()
def serve(
    path: Annotated[
        Path | None, typer.Option(help="The engine's directory; by default the one that AAICLICK_CH_URL names.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Also listen on this TCP port, for other programs; 0 takes any free port."),
    ] = None,
    idle_exit: Annotated[
        float | None,
        typer.Option(min=0.0, max=31_536_000.0, help="End after this many seconds without a request."),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="If another process serves the directory, wait until it ends.")
    ] = False,
) -> None:
    """Serve the embedded ClickHouse to the other processes of this machine, until Ctrl-C or SIGTERM."""
    from aaiclick.data.embedded.directory_lock import owner_pid  # here, to keep start-up light
    from aaiclick.data.gateway import serve_directory  # here, to keep start-up light
    from aaiclick.errors import Conflict  # here, to keep start-up light

    directory = path or _configured_directory()
    if directory.is_absolute():
        _stand_somewhere()
    with _signals() as told:
        serving = serve_directory(directory, port=port)
        if serving is None:
            cause = f"process {owner_pid(directory) or '(still starting)'} owns it"
            if not wait:
                raise Conflict(
                    what=f"The data in {directory}", verb="served", cause=cause, hint="That process serves it too."
                )
            say(f"aaiclick: waiting for {directory}: {cause}, and serves it")
            serving = _wait_for_our_turn(directory, port, told)
        if serving is None:  # told to end meanwhile
            return
        try:
            also = f" and {serving.gateway.tcp}" * (serving.gateway.tcp not in ("", serving.gateway.url))
            say(f"aaiclick: serving {directory} at {serving.gateway.url}{also}")
            _wait_for_the_end(serving.gateway, told, idle_exit)
        finally:
            serving.close()


def _stand_somewhere() -> None:
    """chdb wants a current directory, whichever; the one where we were started may have been removed."""
    try:
        os.getcwd()
    except OSError:
        os.chdir("/")


def _configured_directory() -> Path:
    from aaiclick.backend import get_ch_url, is_chdb  # here, to keep start-up light
    from aaiclick.errors import InputError  # here, to keep start-up light

    if is_chdb():
        return Path(get_ch_url().removeprefix("chdb://"))
    hint = "Name a directory with --path, or unset AAICLICK_CH_URL."
    raise InputError(field="AAICLICK_CH_URL", value="a ClickHouse server", rule="it serves itself", hint=hint)


@contextmanager
def _signals() -> Iterator[int]:
    """A file that can be read as soon as one of the signals has come."""
    reading, writing = os.pipe()
    before = [(number, signal.signal(number, lambda *_: os.write(writing, b"."))) for number in SIGNALS]
    try:
        yield reading
    finally:
        is_ending = bool(select.select([reading], [], [], 0)[0])
        for number, action in before:  # whoever is told again while it ends goes on ending
            signal.signal(number, signal.SIG_IGN if is_ending else action)
        os.close(reading)
        os.close(writing)


def _wait_for_our_turn(directory: Path, port: int | None, told: int) -> Serving | None:
    from aaiclick.data.gateway import serve_directory  # here, to keep start-up light

    while not select.select([told], [], [], LOOK_EVERY_S)[0]:
        if (serving := serve_directory(directory, port=port)) is not None:
            return serving
    return None


def _wait_for_the_end(gateway: Gateway, told: int, idle_exit_s: float | None) -> None:
    while not select.select([told], [], [], LOOK_EVERY_S)[0]:
        if idle_exit_s is not None and gateway.idle_s >= idle_exit_s:
            return
