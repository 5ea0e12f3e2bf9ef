"""`aaiclick cache`: remembered results of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from aaiclick.cli.afar import afar
from aaiclick.cli.event_loop import wait_for
from aaiclick.cli.output import AsJson, say, show_json, show_table
from aaiclick.wording import counted

if TYPE_CHECKING:
    from aaiclick.representations.cached_results import CacheCleared, CachePage

COLUMNS = ("id", "kind", "entrypoint", "label", "task_id", "size", "tables", "created_at", "expires_at")

app = typer.Typer(rich_markup_mode=None)

Entrypoint = Annotated[
    str | None, typer.Argument(metavar="ENTRYPOINT", help="Only those of this function, as in myapp.flows.load.")
]


@app.command("list")
def list_(
    entrypoint: Entrypoint = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")] = 100,
    before: Annotated[
        int | None, typer.Option(min=1, metavar="ID", help="Only those before this one: the `next` of the page before.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List remembered results, the newest first."""
    page = wait_for(_list(entrypoint, limit, before))
    if as_json:
        show_json(page)
        return
    rows = [dict(entry) for entry in page["entries"]]
    show_table(COLUMNS, [[row[column] for column in COLUMNS] for row in rows])
    count, more = counted(len(rows), "result"), page["next"]
    say(f"{count}; there may be more: --before {more}" if more else count)


async def _list(entrypoint: str | None, limit: int, before: int | None) -> CachePage:
    if (api := afar()) is not None:
        return await api.list_cache(entrypoint, before=before, limit=limit)
    from aaiclick.orchestration.queries.cached_results import list_cache  # here, to keep start-up light
    from aaiclick.representations.cached_results import cache_page  # here, to keep start-up light

    return cache_page(await list_cache(entrypoint, limit, before=before), limit)


@app.command()
def clear(
    entrypoint: Entrypoint = None,
    entry: Annotated[
        int | None, typer.Option("--id", min=1, metavar="ID", help="Only this entry, as `cache list` shows it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Remove remembered results, all unless told which; tables that nothing else needs are dropped."""
    cleared = wait_for(_clear(entrypoint, entry))
    if as_json:
        show_json(cleared)
    else:
        say(f"{counted(cleared['removed'], 'result')} removed.")


async def _clear(entrypoint: str | None, entry: int | None) -> CacheCleared:
    if (api := afar()) is not None:
        return await api.clear_cache(entrypoint, entry_id=entry)
    from aaiclick.orchestration.queries.cached_results import clear_cache  # here, to keep start-up light
    from aaiclick.representations.cached_results import CacheCleared  # here, to keep start-up light

    return CacheCleared(removed=await clear_cache(entrypoint, entry_id=entry))
