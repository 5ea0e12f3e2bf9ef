"""`aaiclick prune`: remove now what was kept long enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from aaiclick.cli.event_loop import wait_for
from aaiclick.cli.output import AsJson, say, show_json, show_table

if TYPE_CHECKING:
    from aaiclick.orchestration.control.pruning import Counts


def prune(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show how much would be removed, and remove nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Remove jobs, logs, events and other records that have been kept long enough.

    The leader does the same by itself, a little every minute. Exit with 0, also if there was nothing to remove.
    """
    from aaiclick.orchestration.control.pruning import KINDS  # here, to keep start-up light

    found = wait_for(_prune(dry_run))
    counts = {kind: found[kind] for kind in KINDS}
    if as_json:
        show_json({"dry_run": dry_run, "counts": counts})
        return
    show_table(("kind", "would go" if dry_run else "gone"), list(counts.items()))
    if not any(counts.values()):
        say("Nothing is old enough to be removed.")


async def _prune(dry_run: bool) -> Counts:
    from aaiclick.orchestration.connections import connected  # here, to keep start-up light
    from aaiclick.orchestration.control import pruning  # here, to keep start-up light
    from aaiclick.orchestration.log_stores.opening import log_store  # here, to keep start-up light

    async with connected() as database:
        if dry_run:
            return await pruning.look(database, log_store())
        return await pruning.prune(database, log_store(), _tell)


def _tell(counts: Counts) -> None:
    """How much went so far, on stderr."""
    rows = sum(number for kind, number in counts.items() if kind != "logs")
    say(f"{rows} rows and {counts['logs']} logs so far")
