"""The functions that are called inside a `data_context`; they use the current context."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, overload

from aaiclick.data.context import current_context
from aaiclick.data.files.loading import OnError
from aaiclick.data.objects import Object
from aaiclick.data.tables.table_names import Scope, persistent_table
from aaiclick.data.typing.schema import Schema
from aaiclick.data.versions.catalog import Version, schema_of, versions_of
from aaiclick.data.versions.rewriting import roll_back
from aaiclick.data.views import View
from aaiclick.errors import ObjectNotFound


async def create_object(
    schema: Schema | Mapping[str, object],
    *,
    name: str | None = None,
    scope: Scope = "global",
    order: bool = False,
    engine: str = "MergeTree",
    order_by: str | Sequence[str] = (),
    partition_by: str | Sequence[str] = (),
) -> Object:
    """Create an empty Object with these columns. With a name it is kept: for everybody, or for the job.

    ClickHouse sorts the table by `order_by` and divides it by `partition_by`, so that conditions on these columns read
    less. With engine="ReplacingMergeTree", a row replaces the one with the same values of `order_by`.
    """
    return await (await current_context()).create_object(
        schema, name=name, scope=scope, order=order, engine=engine, order_by=order_by, partition_by=partition_by
    )


async def create_object_from_value(
    value: Any,
    *,
    fields: Mapping[str, object] | None = None,
    name: str | None = None,
    scope: Scope = "global",
    order: bool = False,
    engine: str = "MergeTree",
    order_by: str | Sequence[str] = (),
    partition_by: str | Sequence[str] = (),
    nan_to_null: bool | None = None,
) -> Object:
    """Create an Object from a value: a scalar, a list, a dict, records, or a frame of Arrow, pandas or polars.

    NaN of pandas becomes None, NaN of others stays; `nan_to_null` sets one rule for all.
    """
    return await (await current_context()).create_object_from_value(
        value,
        fields=fields,
        nan_to_null=nan_to_null,
        name=name,
        scope=scope,
        order=order,
        engine=engine,
        order_by=order_by,
        partition_by=partition_by,
    )


async def create_object_from_file(
    path: str | os.PathLike[str],
    *,
    fields: Mapping[str, object] | None = None,
    format: str | None = None,
    options: Mapping[str, Any] | None = None,
    on_error: OnError = "refuse",
    columns: Sequence[str] | None = None,
    where: Any = None,
    limit: int | None = None,
    name: str | None = None,
    scope: Scope = "global",
    file_format: str | None = None,
) -> Object:
    """Create an Object from the rows of a file: Parquet, CSV, JSON … by its ending, or by `format`.

    `fields` sets the types of the columns, and `on_error` what becomes of a value that cannot be read exactly. `where`
    keeps the rows for which it is true, `limit` the first of these, and `columns` the columns that it names.
    """
    return await (await current_context()).create_object_from_file(
        path,
        fields=fields,
        format=format,
        options=options,
        on_error=on_error,
        columns=columns,
        where=where,
        limit=limit,
        name=name,
        scope=scope,
        file_format=file_format,
    )


async def create_object_from_url(
    url: str,
    *,
    fields: Mapping[str, object] | None = None,
    format: str | None = None,
    options: Mapping[str, Any] | None = None,
    on_error: OnError = "refuse",
    columns: Sequence[str] | None = None,
    where: Any = None,
    limit: int | None = None,
    json_path: str | Sequence[str | int] | None = None,
    redirects: int = 0,
    name: str | None = None,
    scope: Scope = "global",
    file_format: str | None = None,
) -> Object:
    """Create an Object from the rows at an address, which ClickHouse fetches; most options are those for a file.

    `json_path` leads to a list of records inside a JSON document. Redirects are refused beyond the number that
    `redirects` allows; with any, this process fetches the address. They may lead within its host, or to public ones.
    """
    return await (await current_context()).create_object_from_url(
        url,
        fields=fields,
        format=format,
        options=options,
        on_error=on_error,
        columns=columns,
        where=where,
        limit=limit,
        json_path=json_path,
        redirects=redirects,
        name=name,
        scope=scope,
        file_format=file_format,
    )


@overload
async def open_object(name: str, *, scope: Scope = "global", version: int | None = None) -> Object: ...


@overload
async def open_object(name: Mapping[str, Any], *, scope: Scope = "global") -> Object | View: ...


async def open_object(
    name: str | Mapping[str, Any], *, scope: Scope = "global", version: int | None = None
) -> Object | View:
    """Return the Object of this name, in its latest or the given version; or the Object or View of a reference."""
    context = await current_context()
    if isinstance(name, Mapping):
        return await context.open_reference(name)
    return await context.open_object(name, scope=scope, version=version)


async def list_versions(name: str, *, scope: Scope = "global") -> list[Version]:
    """Return the versions of an Object that are kept, the oldest first; one without versions counts as its first."""
    context = await current_context()
    found = await versions_of(context.client, persistent_table(name, scope, context.job_id))
    if not found:
        raise ObjectNotFound(name=name, hint="list_objects() lists the Objects.")
    return found


async def rollback(name: str, version: int, *, scope: Scope = "global") -> Object:
    """Make a new version of an Object with the rows and columns of an older one, and return the Object."""
    context = await current_context()
    found = await roll_back(context, persistent_table(name, scope, context.job_id), version)
    return Object(context, found.table, found.schema or await schema_of(context.client, found.table))


async def list_objects() -> list[str]:
    """Return the names of the global Objects, sorted."""
    return await (await current_context()).list_objects()


async def delete_object(what: str | Object, *, scope: Scope = "global") -> bool:
    """Delete an Object, given by name or as itself, temporary ones too; return whether there was one."""
    return await (await current_context()).delete_object(what, scope=scope)
