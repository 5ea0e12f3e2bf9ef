"""`aaiclick registered-job backfill` and its kin: run past times of a schedule, see how far that is, stop it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from aaiclick.cli.event_loop import wait_for, with_id
from aaiclick.cli.jobs.job import Before
from aaiclick.cli.jobs.registered_job import Kwargs, Name, converted_kwargs, read_kwargs
from aaiclick.cli.output import AsJson, say, show_facts, show_json, show_table
from aaiclick.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aaiclick.orchestration.backfills import PlannedTime
    from aaiclick.orchestration.models import Backfill

COLUMNS = ("id", "status", "start_at", "end_at", "next_at", "parallel_max", "created_at", "counts")
TIMES = ("time", "state", "runs", "job_id")
FIRES = ("fire_at", "outcome", "job_id", "backfill_id")

BackfillId = Annotated[str, typer.Argument(metavar="ID", help="The backfill's id, or enough of its last digits.")]
Limit = Annotated[int | None, typer.Option(help="How many at most.")]
Offset = Annotated[int | None, typer.Option(help="How many of the newest to leave out.")]


def backfill(
    name: Name,
    start: Annotated[str, typer.Option(help="From this day or time on, as in 2026-11-15 or 2026-11-15T08:00+01:00.")],
    end: Annotated[str, typer.Option(help="Up to, and without, this day or time.")],
    parallel: Annotated[int, typer.Option(help="How many runs at a time.")] = 1,
    kwargs: Kwargs = None,
    force: Annotated[bool, typer.Option("--force", help="Run times again that have run.")] = False,
    failed: Annotated[bool, typer.Option("--failed", help="Only run times again whose last run failed.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which times it would be.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run the past times of a schedule; those that have run are left alone. A day is its midnight in the job's zone."""
    from aaiclick.orchestration import backfills as front  # here, to keep start-up light
    from aaiclick.orchestration.rules.schedules import read_when  # here, to keep start-up light

    begins, ends = read_when(start, "--start"), read_when(end, "--end")
    if dry_run:
        _show_plan(wait_for(front.plan_backfill(name, begins, ends, force=force, failed=failed)), as_json)
        return

    async def made() -> Backfill:
        given = await converted_kwargs(read_kwargs(kwargs), name)
        return await front.backfill_job(name, begins, ends, parallel=parallel, kwargs=given, force=force, failed=failed)

    _show(wait_for(made()), as_json)


def _show_plan(times: list[PlannedTime], as_json: bool) -> None:
    from aaiclick.representations.schedules.backfills import backfill_plan  # here, to keep start-up light

    plan = backfill_plan(times)
    if as_json:
        show_json(plan)
        return
    shown = [(each["time"], each["state"], "yes" if each["runs"] else "no", each["job_id"]) for each in plan["times"]]
    show_table(TIMES, shown)
    number, counts = plan["would_run"], plan["left_alone"]
    left = f"; left alone: {_in_words(counts)}" if counts else ""
    say(f"{number} time{'' if number == 1 else 's'} would run{left}.")


def list_(
    name: Name, limit: Limit = None, offset: Offset = None, before: Before = None, as_json: AsJson = False
) -> None:
    """List the backfills of a registered job, the newest first; all times before `next_at` are done with."""
    from aaiclick.orchestration.backfills import list_backfills  # here, to keep start-up light
    from aaiclick.representations.schedules.backfills import backfill_page  # here, to keep start-up light

    page = backfill_page(wait_for(list_backfills(name, limit, offset, before=before)), limit)
    if as_json:
        show_json(page)
        return
    found: list[Any] = [*page["backfills"]]
    show_table(COLUMNS, [[each[column] for column in COLUMNS[:-1]] + [_in_words(each["counts"])] for each in found])
    say({0: "no backfills", 1: "1 backfill"}.get(len(found), f"{len(found)} backfills"))


def get(backfill_id: BackfillId, as_json: AsJson = False) -> None:
    """Show a backfill, with its times by what became of them."""
    _show(with_id("backfill", backfill_id, _get), as_json)


async def _get(backfill_id: int) -> Backfill:
    from aaiclick.orchestration.backfills import get_backfill  # here, to keep start-up light

    found = await get_backfill(backfill_id)
    if found is None:
        raise NotFound(what="backfill", field="id", value=backfill_id, hint="")
    return found


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


def fires(
    name: Name,
    limit: Limit = None,
    offset: Offset = None,
    before: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only those before this time: the `next` of the page before.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List what became of the times of a registered job, the latest first; `job_id` is the last run of each."""
    from aaiclick.orchestration.registered_jobs import list_fires  # here, to keep start-up light
    from aaiclick.orchestration.rules.schedules import read_time  # here, to keep start-up light
    from aaiclick.representations.schedules.fires import fire_page  # here, to keep start-up light

    until = None if before is None else read_time(before, "--before")
    page = fire_page(wait_for(list_fires(name, limit, offset, before=until)), limit)
    if as_json:
        show_json(page)
        return
    found: list[Any] = [*page["fires"]]
    show_table(FIRES, [[fire[column] for column in FIRES] for fire in found])
    say({0: "no times", 1: "1 time"}.get(len(found), f"{len(found)} times"))


# ---------------------------------------------------------------- what is shown


def _show(found: Backfill, as_json: bool) -> None:
    from aaiclick.representations.schedules.backfills import backfill_answer  # here, to keep start-up light

    facts = backfill_answer(found)
    if as_json:
        show_json(facts)
    else:
        show_facts({**facts, "counts": _in_words(found.counts)})


def _in_words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.items())
