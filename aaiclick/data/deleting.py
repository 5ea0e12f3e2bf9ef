"""Delete Objects, given by name or as the Object itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aaiclick.data.objects import Object
from aaiclick.data.tables.lifetimes import Keeper, drop
from aaiclick.data.tables.table_names import scope_of, without_version
from aaiclick.data.versions.catalog import versions_of
from aaiclick.errors import InputError, ObjectNotFound

if TYPE_CHECKING:
    from aaiclick.data.context import Context
    from aaiclick.data.tables.table_names import Scope


async def delete(context: Context, what: str | Object, scope: Scope) -> bool:
    """Delete an Object with all of its versions; return False if there is none, or if it is stale.

    Raise InputError for a temporary Object of another context, and for one that a task's arguments or result refer to.
    """
    if isinstance(what, str):
        try:
            what = await context.open_object(what, scope=scope)
        except ObjectNotFound:
            return False
    if not isinstance(what, Object):
        rule, hint = (
            "it must be an Object, or the name of one",
            "For a View, delete its Object; a query stores no rows.",
        )
        raise InputError(field="delete_object", value=type(what).__name__, rule=rule, hint=hint)
    keeper = what._table.keeper
    if what.stale:
        return False
    if isinstance(keeper, Keeper):
        await _drop_own(what._context, keeper)
    elif scope_of(what.table) == "temporary":
        rule = "it belongs to another context, and ends with that context"
        raise InputError(field="delete_object", value=what.table, rule=rule, hint="Delete it where it was made.")
    else:
        await _drop_versions(context, without_version(what.table))
    return True


async def _drop_versions(context: Context, table: str) -> None:
    """Drop all versions, the latest last: if this is interrupted, the Object keeps its latest rows.

    It is repeated until none is left, so that versions which are made meanwhile are dropped too.
    """
    client = context.client
    while versions := await versions_of(client, table):
        for each in versions:
            await drop(client, each.table)


async def _drop_own(context: Context, keeper: Keeper) -> None:
    if keeper in context.referred:
        rule = "a task's arguments or result refer to it"
        raise InputError(field="delete_object", value=keeper.table, rule=rule, hint="It is dropped when they end.")
    keeper.dropped = True
    await context._lifetime.drop(keeper)
