"""`aaiclick registered-job backfills` and `cancel-backfill`: how far backfills are, and how they are stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from aaiclick.cli.job import to_time
from aaiclick.cli.loop import wait_for, with_id
from aaiclick.cli.output import AsJson, say, show_json, show_table
from aaiclick.cli.registered_job import Name, backfill_json

if TYPE_CHECKING:
    from aaiclick.orchestration.models import Backfill

COLUMNS = ("id", "status", "start_at", "end_at", "next_at", "parallel_max", "created_at")

BackfillId = Annotated[str, typer.Argument(metavar="ID", help="The backfill's id, or enough of its last digits.")]


def list_(
    name: Name,
    limit: Annotated[int | None, typer.Option(help="How many at most.")] = None,
    offset: Annotated[int | None, typer.Option(help="How many of the newest to leave out.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the backfills of a registered job, the newest first; all times before `next_at` are done with."""
    from aaiclick.orchestration.backfills import list_backfills  # here, to keep start-up light

    found = [to_json(backfill) for backfill in wait_for(list_backfills(name, limit, offset))]
    if as_json:
        show_json({"backfills": found})
        return
    show_table(COLUMNS, [[facts[column] for column in COLUMNS] for facts in found])
    say({0: "no backfills", 1: "1 backfill"}.get(len(found), f"{len(found)} backfills"))


def cancel(backfill_id: BackfillId, as_json: AsJson = False) -> None:
    """Start no more runs of a backfill; those that have begun go on."""
    from aaiclick.orchestration.backfills import cancel_backfill  # here, to keep start-up light

    async def cancel_it(found: int) -> tuple[int, bool]:
        return found, await cancel_backfill(found)

    wanted, cancelled = with_id("backfill", backfill_id, cancel_it)
    if as_json:
        show_json({"id": str(wanted), "cancelled": cancelled})
    else:
        say(f"Backfill {wanted} starts no more runs." if cancelled else f"Backfill {wanted} had ended already.")


def to_json(backfill: Backfill) -> dict[str, Any]:
    """How it was asked for, and how far it is."""
    times = ("next_at", "created_at", "completed_at")
    return backfill_json(backfill) | {field: to_time(getattr(backfill, field)) for field in times}
