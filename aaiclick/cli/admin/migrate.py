"""`aaiclick migrate`: the schema of the database."""

from __future__ import annotations

from typing import Annotated

import typer

from aaiclick.cli.event_loop import wait_for
from aaiclick.cli.output import AsJson, say, show_json, show_text

app = typer.Typer(rich_markup_mode=None)

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
    """Bring the database to a version of the schema."""
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
    """Exit with 0 if the schema is the one that this version of aaiclick needs, else say why not."""
    from aaiclick.backend import get_db_url  # here, to keep start-up light
    from aaiclick.orchestration.store import schema  # here, to keep start-up light

    wait_for(schema.check(get_db_url()))
    if as_json:
        show_json({"version": schema.HEAD, "needed": schema.HEAD})
    else:
        show_text(schema.HEAD)
