"""`aaiclick migrate`: the schema of the database."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from aaiclick.cli.event_loop import wait_for
from aaiclick.cli.output import AsJson, say, show_json, show_table, show_text

app = typer.Typer(rich_markup_mode=None)

TELL_EVERY_S = 2.0

AsSql = Annotated[bool, typer.Option("--sql", help="Print the SQL for an empty database instead of running it.")]


@app.callback(invoke_without_command=True)
def migrate(context: typer.Context, as_sql: AsSql = False, as_json: AsJson = False) -> None:
    if context.invoked_subcommand is None:
        upgrade("head", as_sql=as_sql, as_json=as_json)
    elif as_sql or as_json:
        raise typer.BadParameter(f"put the option after {context.invoked_subcommand}.", context)


@app.command()
def upgrade(
    revision: Annotated[str, typer.Argument(help="head, or a version; with --sql also FROM:TO.")] = "head",
    as_sql: AsSql = False,
    as_json: AsJson = False,
) -> None:
    """Migrate the database to a version of the schema."""
    from aaiclick.backend import get_db_url  # here, to keep start-up light
    from aaiclick.orchestration.store import schema  # here, to keep start-up light

    if as_sql:
        sql = schema.sql(get_db_url(), revision)
        show_json({"sql": sql}) if as_json else show_text(sql.strip())
        return
    before, after = wait_for(_upgrade(get_db_url(), revision))
    if as_json:
        show_json({"before": before, "after": after})
        return
    show_text(after or "")
    say(f"The schema was {after} already." if before == after else f"The schema was upgraded; before {_was(before)}.")


def _was(version: str | None) -> str:
    return "there was none" if version is None else f"it was {version}"


async def _upgrade(url: str, revision: str) -> tuple[str | None, str | None]:
    from aaiclick.orchestration.store import schema  # here, to keep start-up light

    before = await schema.current(url)
    await schema.upgrade(url, revision)
    return before, await schema.current(url)


@app.command()
def current(as_json: AsJson = False) -> None:
    """Print the version of the database's schema."""
    from aaiclick.backend import get_db_url  # here, to keep start-up light
    from aaiclick.orchestration.store import schema  # here, to keep start-up light

    version = wait_for(schema.current(get_db_url()))
    if as_json:
        show_json({"version": version, "needed": schema.HEAD})
    elif version is None:
        say("There is no schema yet. Run: aaiclick migrate upgrade head")
    else:
        show_text(version)


@app.command()
def check(as_json: AsJson = False) -> None:
    """Exit with 0 if the schema is the one that this version of aaiclick needs, else print the reason."""
    from aaiclick.backend import get_db_url  # here, to keep start-up light
    from aaiclick.orchestration.store import schema  # here, to keep start-up light

    wait_for(schema.check(get_db_url()))
    if as_json:
        show_json({"version": schema.HEAD, "needed": schema.HEAD})
    else:
        show_text(schema.HEAD)


@app.command()
def copy(
    to: Annotated[str, typer.Option("--to", metavar="URL", help="The database to copy to: empty, or this copy's.")],
    while_live: Annotated[
        bool,
        typer.Option(
            "--although-workers-live", help="Do not refuse if workers or a leader live: what they do may be lost."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Copy the state to another database; the same command again goes on with a copy that was cut off.

    Jobs, history, schedules, tokens, audit: all of it, with the same ids, compared at the end. The data of Objects and
    the logs of tasks stay where they are: the new installation uses the same AAICLICK_LOCAL_ROOT, AAICLICK_CH_URL and
    AAICLICK_LOG_DIR, or gets copies of these.
    """
    from aaiclick.backend import get_db_url  # here, to keep start-up light
    from aaiclick.orchestration.database_copies import copy_database  # here, to keep start-up light
    from aaiclick.urls import mask_url, read_sql_url  # here, to keep start-up light

    target = read_sql_url("--to", to, lambda text: Path(os.path.abspath(os.path.expanduser(text))))
    tables = wait_for(copy_database(get_db_url(), target, while_live=while_live, seen=_Told().tell))
    if as_json:
        show_json({"tables": [{"name": each.name, "rows": each.rows, "digest": each.digest} for each in tables]})
    else:
        show_table(("table", "rows", "digest"), [(each.name, each.rows, each.digest[:16]) for each in tables])
    say(f"All {sum(each.rows for each in tables)} rows are the same in {mask_url(target)}.")
    say("Set AAICLICK_SQL_URL to it wherever aaiclick runs. The data of Objects and the logs of tasks were not moved:")
    say("keep AAICLICK_LOCAL_ROOT, AAICLICK_CH_URL and AAICLICK_LOG_DIR, or move what is there.")


class _Told:
    """Says how far a copy is: at the beginning of each table, at its end, and now and then between."""

    def __init__(self) -> None:
        self._at = 0.0

    def tell(self, table: str, done: int, every: int) -> None:
        now = time.monotonic()
        if done in (0, every) or now - self._at >= TELL_EVERY_S:
            self._at = now
            say(f"{table}: {done} of {every} rows")
