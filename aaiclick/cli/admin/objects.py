"""`aaiclick data list|show|query|versions|rollback|delete`: the Objects that stay."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aaiclick.cli.afar import afar
from aaiclick.cli.event_loop import wait_for
from aaiclick.cli.output import AsJson, printable, say, show_json, show_table
from aaiclick.errors import InputError
from aaiclick.wording import counted

if TYPE_CHECKING:
    from aaiclick.data.versions.catalog import Version
    from aaiclick.representations.stored_data.objects import RowsAnswer, SchemaAnswer

ROWS_MAX = 10_000
ROWS_AFAR_MAX = 1000
STORED = ("name", "table", "rows", "bytes")
VERSION_FACTS = ("version", "made_at", "operation", "rows", "bytes")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The Object's name.")]
Limit = Annotated[int, typer.Option(min=0, max=ROWS_MAX, help="Show at most this many rows.")]


def list_(as_json: AsJson = False) -> None:
    """List the persistent Objects, with their tables and sizes."""
    found = wait_for(_list())
    if as_json:
        show_json(found)
        return
    stored = found.get("stored", [{"name": name} for name in found["objects"]])  # a server tells their names
    show_table(STORED, [[each.get(fact) for fact in STORED] for each in stored])
    say(counted(len(stored), "Object"))


async def _list() -> dict[str, Any]:
    if (api := afar()) is not None:
        return dict(await api.list_objects())
    from aaiclick.data.browsing import list_stored  # here, to keep start-up light
    from aaiclick.representations.stored_data.objects import stored_list  # here, to keep start-up light

    return dict(stored_list(await list_stored()))


def show(name: Name, limit: Limit = 10, as_json: AsJson = False) -> None:
    """Show the columns of an Object, and its first rows."""
    schema, found = wait_for(_look(name, limit))
    if as_json:
        show_json({**schema, **found})
        return
    named = ", ".join(f"{column['name']} {column['type']}" for column in schema["columns"])
    say(printable(f"{name}: {schema['shape']}; {named}"))
    _show_rows(found)


async def _look(name: str, limit: int) -> tuple[SchemaAnswer, RowsAnswer]:
    if (api := afar()) is not None:
        if not 1 <= limit <= ROWS_AFAR_MAX:
            rule, hint = f"a server gives from 1 to {ROWS_AFAR_MAX} rows", ""
            raise InputError(field="--limit", value=limit, rule=rule, hint=hint)
        return await api.describe_object(name), await api.read_rows(name, limit=limit)
    from aaiclick.data.browsing import browse_object, describe_object  # here, to keep start-up light
    from aaiclick.data.context import data_context  # here, to keep start-up light
    from aaiclick.representations.stored_data.objects import rows_answer, schema_answer  # here, to keep start-up light

    async with data_context(oplog=False):
        schema, rows = await describe_object(name), await browse_object(name, limit=limit)
        return schema_answer(name, schema), rows_answer(rows)


def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT; an Object's table is p_ and its name.")],
    limit: Limit = 100,
    as_json: AsJson = False,
) -> None:
    """Show the rows of a SELECT; it can change nothing, and is limited to ten seconds and ten megabytes."""
    from aaiclick.data.browsing import query_rows  # here, to keep start-up light
    from aaiclick.representations.stored_data.objects import rows_answer  # here, to keep start-up light

    found = rows_answer(wait_for(query_rows(sql, limit=limit)))
    if as_json:
        show_json(found)
    else:
        _show_rows(found)


def versions(name: Name, as_json: AsJson = False) -> None:
    """List the versions of an Object that are kept."""
    from aaiclick.representations.stored_data.objects import version_list  # here, to keep start-up light

    found = version_list(name, wait_for(_versions(name)))
    if as_json:
        show_json(found)
        return
    kept = found["versions"]
    show_table(VERSION_FACTS, [list(each.values()) for each in kept])
    say(counted(len(kept), "version"))


def rollback(
    name: Name,
    version: Annotated[
        int, typer.Argument(min=1, metavar="VERSION", help="The number of a version that still exists.")
    ],
    as_json: AsJson = False,
) -> None:
    """Restore an Object to an earlier version, as a new version."""
    latest = wait_for(_rollback(name, version))
    if as_json:
        show_json({"name": name, "version": version, "latest": latest})
    else:
        say(f"Object {name} has the rows of version {version} again, as version {latest}.")


async def _versions(name: str) -> list[Version]:
    from aaiclick.data.context import data_context  # here, to keep start-up light
    from aaiclick.data.front import list_versions  # here, to keep start-up light

    async with data_context(oplog=False):
        return await list_versions(name)


async def _rollback(name: str, version: int) -> int:
    from aaiclick.data.context import data_context  # here, to keep start-up light
    from aaiclick.data.front import list_versions, rollback  # here, to keep start-up light

    async with data_context():
        _ = await rollback(name, version)
        return (await list_versions(name))[-1].number


def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete an Object with all of its rows."""
    if not yes:
        _ask(name)
    if not wait_for(_delete(name)):
        from aaiclick.errors import ObjectNotFound  # here, to keep start-up light

        raise ObjectNotFound(name=name, hint="See: aaiclick data list")
    if as_json:
        show_json({"name": name, "deleted": True})
    else:
        say(f"Object {name} is deleted.")


def _ask(name: str) -> None:
    """Whoever cannot be asked has to say yes beforehand."""
    if sys.stdin is None or not sys.stdin.isatty():
        rule = "deleting it needs an answer, and nobody can be asked here"
        raise InputError(field="NAME", value=name[:50], rule=rule, hint="Say --yes.")
    typer.confirm(f"Delete {name} with all of its rows?", abort=True, err=True)


async def _delete(name: str) -> bool:
    from aaiclick.data.context import data_context  # here, to keep start-up light

    async with data_context(oplog=False) as context:
        return await context.delete_object(name)


def _show_rows(found: RowsAnswer) -> None:
    show_table([column["name"] for column in found["columns"]], found["rows"])
    count = counted(len(found["rows"]), "row")
    say(count if found["complete"] else f"{count}; there are more (--limit)")
