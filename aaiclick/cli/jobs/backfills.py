"""`aaiclick registered-job backfill` and its kin: run past times of a schedule, see how far that is, stop it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from aaiclick.cli.afar import afar, refuse_offset
from aaiclick.cli.event_loop import wait_for, with_id
from aaiclick.cli.jobs.job import Before
from aaiclick.cli.jobs.registered_job import Kwargs, Name, converted_kwargs, read_kwargs
from aaiclick.cli.output import AsJson, say, show_facts, show_json, show_table
from aaiclick.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aaiclick.representations.schedules.backfills import BackfillAnswer, BackfillPage, BackfillPlan
    from aaiclick.representations.schedules.fires import FirePage

COLUMNS = ("id", "status", "start_at", "end_at", "next_at", "parallel_max", "created_at", "counts")
TIMES = ("time", "state", "runs", "job_id")
FIRES = ("fire_at", "outcome", "job_id", "backfill_id")

BackfillId = Annotated[str, typer.Argument(metavar="ID", help="The backfill's id, or enough of its last digits.")]
Limit = Annotated[int | None, typer.Option(help="Show at most this many.")]
Offset = Annotated[int | None, typer.Option(help="Skip this many of the newest.")]


def backfill(
    name: Name,
    start: Annotated[str, typer.Option(help="From this day or time on, as in 2026-11-15 or 2026-11-15T08:00+01:00.")],
    end: Annotated[str, typer.Option(help="Up to this day or time, which is not included.")],
    parallel: Annotated[int, typer.Option(help="How many runs go on at the same time.")] = 1,
    kwargs: Kwargs = None,
    force: Annotated[bool, typer.Option("--force", help="Also run times that have run before.")] = False,
    failed: Annotated[bool, typer.Option("--failed", help="Only run times whose last run failed.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show which times would run, and run nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run past times of a schedule, except those that have run. A day means its midnight in the job's zone."""
    if dry_run:
        _show_plan(wait_for(_plan(name, (start, end), force, failed)), as_json)
        return
    options: dict[str, Any] = {"parallel": parallel, "force": force, "failed": failed}
    _show(wait_for(_make(name, (start, end), read_kwargs(kwargs), options)), as_json)


async def _plan(name: str, between: tuple[str, str], force: bool, failed: bool) -> BackfillPlan:
    if (api := afar()) is not None:
        return await api.plan_backfill(name, *between, force=force, failed=failed)
    from aaiclick.orchestration import backfills as front  # here, to keep start-up light
    from aaiclick.representations.schedules.backfills import backfill_plan  # here, to keep start-up light

    return backfill_plan(await front.plan_backfill(name, *_read(between), force=force, failed=failed))


async def _make(
    name: str, between: tuple[str, str], kwargs: dict[str, Any] | None, options: dict[str, Any]
) -> BackfillAnswer:
    if (api := afar()) is not None:
        return await api.create_backfill(name, *between, kwargs=kwargs, **options)
    from aaiclick.orchestration import backfills as front  # here, to keep start-up light
    from aaiclick.representations.schedules.backfills import backfill_answer  # here, to keep start-up light

    begins, ends = _read(between)
    given = await converted_kwargs(kwargs, name)
    return backfill_answer(await front.backfill_job(name, begins, ends, kwargs=given, **options))


def _read(between: tuple[str, str]) -> tuple[Any, Any]:
    from aaiclick.orchestration.rules.schedules.fires import read_when  # here, to keep start-up light

    return read_when(between[0], "--start"), read_when(between[1], "--end")


def _show_plan(plan: BackfillPlan, as_json: bool) -> None:
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
    """List the backfills of a registered job, newest first; all times before `next_at` are finished."""
    page = wait_for(_list(name, limit, offset, before))
    if as_json:
        show_json(page)
        return
    found: list[Any] = [*page["backfills"]]
    show_table(COLUMNS, [[each[column] for column in COLUMNS[:-1]] + [_in_words(each["counts"])] for each in found])
    say({0: "no backfills", 1: "1 backfill"}.get(len(found), f"{len(found)} backfills"))


async def _list(name: str, limit: int | None, offset: int | None, before: int | None) -> BackfillPage:
    if (api := afar()) is not None:
        refuse_offset(offset)
        return await api.list_backfills(name, before=before, limit=limit)
    from aaiclick.orchestration.backfills import list_backfills  # here, to keep start-up light
    from aaiclick.representations.schedules.backfills import backfill_page  # here, to keep start-up light

    return backfill_page(await list_backfills(name, limit, offset, before=before), limit)


def get(backfill_id: BackfillId, as_json: AsJson = False) -> None:
    """Show a backfill, with its times by outcome."""
    _show(with_id("backfill", backfill_id, _get), as_json)


async def _get(backfill_id: int) -> BackfillAnswer:
    if (api := afar()) is not None:
        return await api.get_backfill(backfill_id)
    from aaiclick.orchestration.backfills import get_backfill  # here, to keep start-up light
    from aaiclick.representations.schedules.backfills import backfill_answer  # here, to keep start-up light

    found = await get_backfill(backfill_id)
    if found is None:
        raise NotFound(what="backfill", field="id", value=backfill_id, hint="")
    return backfill_answer(found)


def cancel(backfill_id: BackfillId, as_json: AsJson = False) -> None:
    """Start no more runs of a backfill; runs that have begun continue."""

    async def cancel_it(found: int) -> tuple[int, bool]:
        if (api := afar()) is not None:
            return found, (await api.cancel_backfill(found))["cancelled"]
        from aaiclick.orchestration.backfills import cancel_backfill  # here, to keep start-up light

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
        str | None, typer.Option(metavar="TIME", help="Only times before this one: the `next` of the previous page.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the times of a registered job with their outcomes, latest first; `job_id` is the last run of each."""
    page = wait_for(_fires(name, limit, offset, before))
    if as_json:
        show_json(page)
        return
    found: list[Any] = [*page["fires"]]
    show_table(FIRES, [[fire[column] for column in FIRES] for fire in found])
    say({0: "no times", 1: "1 time"}.get(len(found), f"{len(found)} times"))


async def _fires(name: str, limit: int | None, offset: int | None, before: str | None) -> FirePage:
    if (api := afar()) is not None:
        refuse_offset(offset)
        return await api.list_fires(name, before=before, limit=limit)
    from aaiclick.orchestration.registered_jobs import list_fires  # here, to keep start-up light
    from aaiclick.orchestration.rules.schedules.fires import read_time  # here, to keep start-up light
    from aaiclick.representations.schedules.fires import fire_page  # here, to keep start-up light

    until = None if before is None else read_time(before, "--before")
    return fire_page(await list_fires(name, limit, offset, before=until), limit)


# ---------------------------------------------------------------- what is shown


def _show(facts: BackfillAnswer, as_json: bool) -> None:
    if as_json:
        show_json(facts)
    else:
        show_facts({**facts, "counts": _in_words(facts["counts"])})


def _in_words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.items())
