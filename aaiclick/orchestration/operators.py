"""`map`, `filter`, `foreach` and `reduce`: calling a function for the rows of an Object, in parts, by many workers.

Each call returns a Group at once. The first task of the group copies the rows, each with a number, and makes a task for
every range of numbers; the last task joins their tables. So parts are disjoint and complete, even if the Object changes
meanwhile. A part writes a table of its own run, which is published when the run completes, so a part that runs again
adds no row twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aaiclick.data.typing.schema import VALUE, Schema
from aaiclick.errors import InputError
from aaiclick.orchestration.callbacks import Callback, name_callback, refuse_nothing
from aaiclick.orchestration.context import Context
from aaiclick.orchestration.decorators import TaskFactory
from aaiclick.orchestration.expansions import _expand_map, _expand_reduce
from aaiclick.orchestration.gathering import staging_around
from aaiclick.orchestration.models import Group, Task
from aaiclick.orchestration.parts import Types, _gather_results, _map_part, _reduce_part
from aaiclick.orchestration.rules.validation import shorten

__all__ = [
    "map",
    "filter",
    "foreach",
    "reduce",
    "create_result_collector",
    "_map_part",
    "_reduce_part",
    "_expand_reduce",
]

PARTITION_MAX = 2**63 - 1
NAME_MAX = 150


# ---------------------------------------------------------------- what you call


def map(
    cbk: Callback,
    obj: Any,
    partition: int | None = None,
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    *,
    batch: bool = False,
    drop_none: bool = False,
    fields: Mapping[str, object] | object = None,
    name: str | None = None,
) -> Group:
    """Make an Object of what `cbk(row, *args, **kwargs)` returns for each row; with `batch`, for whole Arrow tables.

    With `drop_none`, a row for which it returns None is left out.

    `obj` is an Object, a View, or a task or group with such a result. The types are those of `fields` (names and types,
    or one type), else those of the callback's annotation, else those of the values. Parts have `partition` rows.
    """
    given = _checked_fields(fields)
    if drop_none not in (True, False) or (drop_none and batch is True):
        rule = "it must be True or False; with batch=True the callback itself leaves out rows"
        raise InputError(field="drop_none", value=shorten(drop_none), rule=rule, hint="")
    more = {"drop_none": True} if drop_none else {}
    return _expanded("map", cbk, obj, partition, args, kwargs, batch=batch, fields=given, name=name, more=more)


def filter(
    cbk: Callback,
    obj: Any,
    partition: int | None = None,
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    *,
    batch: bool = False,
    name: str | None = None,
) -> Group:
    """Make an Object of the rows for which `cbk(row, *args, **kwargs)` is true.

    With `batch`, the callback gets an Arrow table and returns a truth value for each row, or a table of rows to keep.
    """
    return _expanded("filter", cbk, obj, partition, args, kwargs, batch=batch, name=name)


def foreach(
    cbk: Callback,
    obj: Any,
    partition: int | None = None,
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    *,
    batch: bool = False,
    name: str | None = None,
) -> Group:
    """Call `cbk(row, *args, **kwargs)` for each row and ignore what it returns.

    A part that fails may run again, and then calls it again for the same rows.
    """
    return _expanded("foreach", cbk, obj, partition, args, kwargs, batch=batch, name=name)


def reduce(
    cbk: Callback,
    obj: Any,
    partition: int | None = None,
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    *,
    fields: Mapping[str, object] | object = None,
    name: str | None = None,
) -> Group:
    """Make an Object of one row by layers of calls `cbk(partition, output, *args, **kwargs)`.

    The callback reads the Object `partition` and inserts one row into the Object `output`, which has the columns of
    `obj` or those of `fields`. The rows of one layer are the input of the next, until one row is left.
    """
    size = _checked_partition(partition, 2)
    positional, named = _checked_arguments(args, kwargs)
    path = name_callback(cbk, 2, positional, named)
    asked = {"cbk": path, "obj": obj, "partition": size, "args": positional, "kwargs": named}
    return _group(name or _label("reduce", path), _expand_reduce, {**asked, "fields": _checked_fields(fields)})


async def create_result_collector(job_id: int | None, tasks: Any, *, name: str | None = None) -> Task:
    """Make a task of the job that returns the results of `tasks`: one Object if all are Objects, else a list.

    In a running task, `tasks` may be a number: that many of the tasks it made last.
    """
    if type(tasks) is int:
        items: list[Any] = _made_last(tasks, job_id)
    else:
        items = list(tasks) if isinstance(tasks, list | tuple) else [tasks]
    if not all(isinstance(item, Task | Group) for item in items):
        raise InputError(
            field="tasks", value=shorten(tasks), rule="it must be Tasks and Groups, or a list of them", hint=""
        )
    label = name or "collect"
    made = Task(_gather_results.entrypoint, {"results": items}, name=label, references=False, chosen=True)
    return made if job_id is None else await Context(job_id).apply(made)


def _made_last(count: int, job_id: int | None) -> list[Task]:
    """Return the last `count` tasks that the current run has made, in the order of creation."""
    staging = staging_around()
    if staging is None or job_id not in (None, staging.job_id):
        rule = "a number counts the tasks that a running task has made for its own job"
        raise InputError(field="tasks", value=str(count), rule=rule, hint="Give the tasks.")
    made = [node for node in staging if isinstance(node, Task)]
    if not 0 <= count <= len(made):
        rule = f"this task has made {len(made)}"
        raise InputError(field="tasks", value=str(count), rule=rule, hint="Give their number, or the tasks themselves.")
    return made[len(made) - count :]


def _expanded(
    verb: str,
    cbk: Callback,
    obj: Any,
    partition: int | None,
    args: Sequence[object],
    kwargs: Mapping[str, object] | None,
    *,
    batch: bool,
    name: str | None,
    fields: Types | None = None,
    more: Mapping[str, object] | None = None,
) -> Group:
    if type(batch) is not bool:
        raise InputError(field="batch", value=shorten(batch), rule="it must be True or False", hint="")
    size = _checked_partition(partition, 1)
    positional, named = _checked_arguments(args, kwargs)
    path = name_callback(cbk, 1, positional, named)
    if verb == "map":
        refuse_nothing(cbk)
    asked = {"verb": verb, "cbk": path, "obj": obj, "partition": size, "args": positional, "kwargs": named}
    asked |= {"batch": batch, "fields": fields or {}, **(more or {})}
    return _group(name or _label(verb, path), _expand_map, asked)


def _group(name: str, expand: TaskFactory, kwargs: dict[str, object]) -> Group:
    if kwargs["obj"] is None:
        rule = "it must be an Object, a View, or a task or group that returns one"
        raise InputError(field="obj", value="None", rule=rule, hint="")
    with Group(name) as group:
        group.output = expand(**kwargs)
    return group


def _label(verb: str, path: str) -> str:
    return f"{verb} {path.rpartition('.')[2][:NAME_MAX]}"


def _checked_partition(partition: object, least: int) -> int | None:
    if partition is None:
        return None
    if type(partition) is not int or not least <= partition <= PARTITION_MAX:
        rule = f"it must be a number of rows, {least} or more"
        raise InputError(
            field="partition", value=shorten(partition), rule=rule, hint="Leave it out for the default size."
        )
    return partition


def _checked_arguments(args: object, kwargs: object) -> tuple[list[object], dict[str, object]]:
    if not isinstance(args, list | tuple):
        raise InputError(
            field="args", value=shorten(args), rule="it must be a tuple of arguments", hint="For one, write (x,)."
        )
    named = {} if kwargs is None else kwargs
    if not isinstance(named, Mapping) or not all(isinstance(key, str) for key in named):
        raise InputError(field="kwargs", value=shorten(kwargs), rule="it must be a dict of arguments by name", hint="")
    return list(args), dict(named)


def _checked_fields(fields: Mapping[str, object] | object) -> Types:
    """Return column names and types; a single type is that of the column `value`."""
    if fields is None:
        return {}
    given = fields if isinstance(fields, Mapping) else {VALUE: fields}
    return Schema.from_fields(given).types
