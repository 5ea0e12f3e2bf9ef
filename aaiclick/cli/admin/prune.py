"""`aaiclick prune`: remove now what was kept long enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from aaiclick.cli.event_loop import wait_for
from aaiclick.cli.output import AsJson, say, show_json, show_table

if TYPE_CHECKING:
    from aaiclick.orchestration.control.pruning import Counts


def prune(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how much would go.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove jobs, logs, events and all else that was kept long enough.

    Whoever leads does the same by itself, a little every minute. Exits with 0, also if there was nothing to remove.
    """
    from aaiclick.orchestration.control.pruning import KINDS  # here, to keep start-up light

    found = wait_for(_prune(dry_run))
    counts = {kind: found[kind] for kind in KINDS}
    if as_json:
        show_json({"dry_run": dry_run, "counts": counts})
        return
    show_table(("kind", "would go" if dry_run else "gone"), list(counts.items()))
    if not any(counts.values()):
        say("Nothing is too old.")


async def _prune(dry_run: bool) -> Counts:
    from aaiclick.config import settings  # here, to keep start-up light
    from aaiclick.orchestration.connections import connected  # here, to keep start-up light
    from aaiclick.orchestration.control import pruning  # here, to keep start-up light

    async with connected() as database:
        if dry_run:
            return await pruning.look(database, settings().log_dir)
        return await pruning.prune(database, settings().log_dir, _tell)


def _tell(counts: Counts) -> None:
    """How much went so far, on stderr."""
    rows = sum(number for kind, number in counts.items() if kind != "logs")
    say(f"{rows} rows and {counts['logs']} logs so far")
