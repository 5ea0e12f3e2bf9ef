"""The first task of an operator's group: it numbers the rows and makes a task for each range, and the last task."""

from __future__ import annotations

from typing import Any

from aaiclick.data.context import current_context
from aaiclick.data.frames import Frame
from aaiclick.data.objects import Object
from aaiclick.data.row_parts.parts import Numbered, number_rows
from aaiclick.data.views import View
from aaiclick.errors import InputError
from aaiclick.orchestration.callbacks import Loaded, load_callback, returned_fields
from aaiclick.orchestration.decorators import TaskFactory, task
from aaiclick.orchestration.gathering import staging_around
from aaiclick.orchestration.models import Group, Task
from aaiclick.orchestration.parts import (
    Types,
    _collect,
    _filter_part,
    _finish,
    _foreach_part,
    _map_part,
    _reduce_part,
    schema_of,
)
from aaiclick.orchestration.rules.part_sizes import PART_ROWS, part_rows
from aaiclick.orchestration.rules.secrets import keeping_secrets
from aaiclick.orchestration.rules.validation import shorten

EMPTY_REDUCE = "reduce() of empty sequence with no initial value"

_PARTS: dict[str, TaskFactory] = {"map": _map_part, "filter": _filter_part, "foreach": _foreach_part}


@task("expand")
@keeping_secrets
async def _expand_map(
    verb: str,
    cbk: str,
    obj: Any,
    partition: int | None,
    args: list[Any],
    kwargs: dict[str, Any],
    batch: bool,
    fields: Types,
    drop_none: bool = False,
) -> Any:
    """Number the rows, make a task for each part, and return the task that waits for these."""
    callback = load_callback(cbk)
    if verb == "map" and not batch:
        fields = fields or returned_fields(callback.function, drop_none=drop_none)
    if _is_empty_list(obj) and (verb == "foreach" or fields):
        return await _nothing(verb, None, fields)
    rows = await number_rows(await _readable(obj), partition)
    size = partition or await _usual_size(rows)
    if not rows.count and not (verb == "map" and batch):
        return await _nothing(verb, rows.nothing, fields)
    call = {"cbk": cbk, "key": rows.key, "args": args, "kwargs": kwargs, "batch": batch}
    if verb == "map":
        call["fields"] = fields
    if drop_none:
        call["drop_none"] = True
    if verb == "map" and rows.count <= size:
        return _part(
            _map_part, callback, 0, {**call, "part": rows.part(0, rows.count), "rows": [0, rows.count], "only": True}
        )
    with Group("parts") as parts:
        for number, start in enumerate(range(0, rows.count or 1, size)):
            stop = min(start + size, rows.count)
            _part(_PARTS[verb], callback, number, {**call, "part": rows.part(start, stop), "rows": [start, stop]})
    if verb == "foreach":
        return _finish(parts)
    return _collect(parts, rows.nothing, rows.shape) if verb == "filter" else _collect(parts)


async def _usual_size(rows: Numbered) -> int:
    """Return the number of rows of a part if the caller gave none.

    It may differ when this task runs again; that does no harm, because all parts are then made again.
    """
    run = staging_around() if rows.count > PART_ROWS else None
    slots = 1 if run is None else await run.slots()
    return part_rows(rows.count, slots, rows.size_bytes)


def _part(make: TaskFactory, callback: Loaded, number: int, kwargs: dict[str, object]) -> Task:
    return Task(make.entrypoint, kwargs, name=f"part {number}", references=False, chosen=True, **callback.options)


async def _readable(obj: Any) -> Frame:
    """Return an Object or View unchanged; make an Object of other values."""
    if obj is None:
        rule = "it must be an Object, a View, or values that make one"
        raise InputError(field="obj", value=shorten(obj), rule=rule, hint="")
    return obj if isinstance(obj, Frame) else await (await current_context()).create_object_from_value(obj)


def _is_empty_list(obj: Any) -> bool:
    """Return whether the input is an empty list or tuple: no Object can be made of it, because its type is unknown."""
    return type(obj) in (list, tuple) and not obj


async def _nothing(verb: str, like: View | None, fields: Types) -> Object | None:
    """Return the result for an input without rows: an empty Object with the types of `fields` or of the input.

    None for `foreach`.
    """
    if verb == "foreach":
        return None
    if fields and verb == "map":
        return await (await current_context()).create_object(schema_of(fields))
    assert like is not None, "either the input or its size is known"
    return await like.materialize()


@task("expand")
@keeping_secrets
async def _expand_reduce(
    cbk: str, obj: Any, partition: int | None, args: list[Any], kwargs: dict[str, Any], fields: Types
) -> Task:
    """Number the rows, make the tasks of all layers, and return the last one.

    Each task waits for the tasks of the layer before whose rows it reads.
    """
    callback = load_callback(cbk)
    if _is_empty_list(obj):
        raise TypeError(EMPTY_REDUCE)
    rows = await number_rows(await _readable(obj), partition)
    if not rows.count:
        raise TypeError(EMPTY_REDUCE)
    size = partition or await _usual_size(rows)
    call = {"cbk": cbk, "args": args, "kwargs": kwargs, "fields": fields or rows.schema.types, "shape": rows.shape}
    inputs: list[Any] = [rows.part(start, min(start + size, rows.count)) for start in range(0, rows.count, size)]
    depth = 0
    while True:
        with Group(f"layer {depth}"):
            layer = [_part(_reduce_part, callback, at, {**call, "part": each}) for at, each in enumerate(inputs)]
        if len(layer) == 1:
            return layer[0]
        inputs = [layer[start : start + size] for start in range(0, len(layer), size)]
        depth += 1
