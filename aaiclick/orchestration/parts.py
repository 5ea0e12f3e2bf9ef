"""The tasks of operators: those that call a callback for the rows of one part, and those that join their results."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from aaiclick.data.context import current_context
from aaiclick.data.frames import Frame
from aaiclick.data.objects import Object
from aaiclick.data.query.relations import tables_of
from aaiclick.data.row_parts.callback_outputs import Output, output_of_table, output_of_values, store
from aaiclick.data.row_parts.parts import Part, chosen, fill, join_parts, shaped
from aaiclick.data.sql.quoting import name as quoted
from aaiclick.data.typing.schema import VALUE, Schema, Shape
from aaiclick.data.typing.tabulation import conform
from aaiclick.data.views import View
from aaiclick.errors import InputError
from aaiclick.orchestration.callbacks import Loaded, call_for_rows, call_once, load_callback, refuse_returned
from aaiclick.orchestration.decorators import task
from aaiclick.orchestration.rules.validation import shorten

Types = dict[str, str]
"""Columns and their ClickHouse types."""

ROWS_AT_ONCE = 250_000
"""How many rows of a part are in memory as Python values at once."""


def schema_of(fields: Types, shape: Shape | None = None) -> Schema:
    """Return a schema with these columns. Without `shape`, one column `value` gives a list, all others a table."""
    usual: Shape = "list" if list(fields) == [VALUE] else "table"
    return Schema.from_fields(fields, shape or usual)


# ---------------------------------------------------------------- map, filter, foreach


@task("part")
async def _map_part(
    cbk: str,
    part: View,
    key: str,
    rows: list[int],
    args: list[Any],
    kwargs: dict[str, Any],
    batch: bool,
    fields: Types,
    drop_none: bool = False,
    only: bool = False,
) -> dict[str, Any] | Object | None:
    """Make a table of what the callback returns for the rows of a part. The `only` part returns it as the Object.

    None if it returned nothing and no type is known, so that no table can be made.
    """
    made = await _mapped(load_callback(cbk), part, key, rows, args, kwargs, batch, fields, drop_none)
    if only:
        return await _joined([] if made is None else [made])
    return None if made is None else {"rows": made.rows, "untyped": dict(made.untyped)}


async def _mapped(
    callback: Loaded,
    part: View,
    key: str,
    rows: list[int],
    args: list[Any],
    kwargs: dict[str, Any],
    batch: bool,
    fields: Types,
    drop_none: bool,
) -> Part | None:
    outputs: list[Output] = []
    if batch:
        returned = await call_once(callback, await part.arrow(), *args, **kwargs)
        if type(returned) in (list, tuple) and not returned and not fields:
            return None
        outputs.append(_batch_output(callback, returned, fields))
    else:
        async for first, values in _read(part, key, *rows):
            returned = await call_for_rows(callback, values, first, args, kwargs, kept=True)
            if drop_none:
                returned = [each for each in returned if each is not None]
            if returned or not drop_none:
                outputs.append(await asyncio.to_thread(_values_output, returned, fields, first, drop_none))
    if not outputs and fields:
        return Part(await (await current_context()).create_object(schema_of(fields)))
    if not outputs:
        return None
    return await store(await current_context(), outputs, part.table)


def _values_output(returned: list[Any], fields: Types, first: int, dropped: bool) -> Output:
    try:
        return output_of_values(returned, fields)
    except InputError as error:
        without = ", without those for which it returned None" if dropped else ""
        error.add_note(f"The rows of this part are counted from row {first} of the input{without}.")
        raise


def _batch_output(callback: Loaded, returned: Any, fields: Types) -> Output:
    if returned is None:
        refuse_returned(
            callback,
            "a batch callback of map must return a table, and it returned None",
            "Return a table, or use foreach.",
        )
    return output_of_table(returned, fields)


@task("part")
async def _filter_part(
    cbk: str, part: View, key: str, rows: list[int], args: list[Any], kwargs: dict[str, Any], batch: bool
) -> dict[str, Any] | None:
    """Make a table of the rows of a part for which the callback is true; None if there are none."""
    callback, named = load_callback(cbk), shaped(part, "table")
    if batch:
        table = await part.arrow()
        returned = await call_once(callback, table, *args, **kwargs)
        if (kept := _mask(callback, returned, len(table))) is None:
            return {"rows": await _inserted(named, returned), "untyped": {}}
        truths = kept
    else:
        truths = []
        async for first, values in _read(part, key, *rows):
            truths += [bool(each) for each in await call_for_rows(callback, values, first, args, kwargs)]
    numbers = [rows[0] + at for at, truth in enumerate(truths) if truth]
    if not numbers:
        return None
    whole = len(numbers) == len(truths)
    made = await (named.materialize() if whole else chosen(named, key, numbers))
    return {"rows": made, "untyped": {}}


def _mask(callback: Loaded, returned: Any, count: int) -> list[Any] | None:
    """Return the truth values that a batch callback returned, one for each row; None if it returned a table."""
    if hasattr(returned, "column_names") or hasattr(returned, "columns") or isinstance(returned, Mapping):
        return None
    if returned is None or isinstance(returned, str | bytes) or not hasattr(returned, "__iter__"):
        cause = f"as a batch callback of filter it returned {shorten(returned)}"
        refuse_returned(callback, cause, "Return True or False for each row, or a table of the rows to keep.")
    truths = returned.to_pylist() if hasattr(returned, "to_pylist") else list(returned)
    if len(truths) != count:
        cause = f"as a batch callback of filter it returned {len(truths)} values for {count} rows"
        refuse_returned(callback, cause, "Return one value for each row, or a table of the rows to keep.")
    return truths


async def _inserted(part: View, returned: Any) -> Object:
    """Make a table with the columns of the part, and insert the returned rows."""
    made = await part.limit(0).materialize()
    data = conform(returned, made.schema)
    if data.num_rows:
        await (await current_context()).client.insert(made.table, data)
    return made


@task("part")
async def _foreach_part(
    cbk: str, part: View, key: str, rows: list[int], args: list[Any], kwargs: dict[str, Any], batch: bool
) -> None:
    """Call the callback for the rows of a part."""
    callback = load_callback(cbk)
    if batch:
        await call_once(callback, await part.arrow(), *args, **kwargs)
        return
    async for first, values in _read(part, key, *rows):
        await call_for_rows(callback, values, first, args, kwargs)


async def _read(part: View, key: str, start: int, stop: int) -> AsyncIterator[tuple[int, list[Any]]]:
    """Yield the rows of a part as Python values, at most ROWS_AT_ONCE at a time, with the number of the first."""
    number = quoted(key)
    for first in range(start, stop, ROWS_AT_ONCE):
        last = min(first + ROWS_AT_ONCE, stop)
        seen = part if (first, last) == (start, stop) else part.where(f"{number} >= {first} AND {number} < {last}")
        rows = await (seen[part.columns[0]].data() if len(part.columns) == 1 else seen.data("records"))
        assert len(rows) == last - first, f"{len(rows)} rows of a part of {last - first}"
        yield first, rows


@task("collect")
async def _collect(parts: list[dict[str, Any] | None], like: View | None = None, shape: Shape = "table") -> Object:
    """Join the tables of the parts into one Object; the rows stay inside ClickHouse.

    With `like`, the Object gets its columns. A table is made of `like` by a query, so that ClickHouse decides on the
    types: some of them may not be known here.
    """
    found = [Part(part["rows"], part["untyped"]) for part in parts if part is not None]
    return await _joined(found) if like is None else await fill(await shaped(like, shape).materialize(), found)


async def _joined(parts: Sequence[Part]) -> Object:
    """Return one Object with the rows of all parts: the table of an only part, if all its types are known."""
    if not parts:
        rule, hint = "the type of its values is unknown", "Give it with fields=…, or return empty tables."
        raise InputError(field="parts", value="[]", rule=rule, hint=hint)
    if len(parts) == 1 and not parts[0].untyped:
        return parts[0].rows
    return await join_parts(await current_context(), parts)


@task("finish")
def _finish(parts: list[None]) -> None:
    """End `foreach`: this task has nothing to do but wait for all parts."""


@task("collect")
async def _gather_results(results: list[Any]) -> Any:
    """Return the results of other tasks as a list; if all are Objects or Views, join them into one Object."""
    if not results or not all(isinstance(each, Frame) for each in results):
        return results
    tables = [each if isinstance(each, Object) else await each for each in results]
    return await join_parts(await current_context(), [Part(each) for each in tables])


# ---------------------------------------------------------------- reduce


@task("part")
async def _reduce_part(
    cbk: str, part: Any, args: list[Any], kwargs: dict[str, Any], fields: Types, shape: Shape
) -> Object:
    """Return the one row that the callback makes of `part`.

    In the first layer `part` is a View of the rows, in later ones a list of one-row Objects of the layer before.
    """
    callback = load_callback(cbk)
    context = await current_context()
    single: Shape = "scalar" if list(fields) == [VALUE] else "record"
    output = await context.create_object(Schema.from_fields(fields, single))
    if isinstance(part, list):
        rows: Frame = await join_parts(context, [Part(each) for each in part], schema_of(fields))
    else:
        rows = shaped(part, shape)
    await call_once(callback, rows, output, *args, **kwargs)
    await context.note("reduce", output.table, [each.name for each in tables_of(rows._relation)])
    if (count := await output.count()) != 1:
        cause = f"it wrote {count} rows to its output, and reduce needs exactly one"
        refuse_returned(callback, cause, "Write: await output.insert(…), once.")
    return output
