"""The callbacks of operators (map, filter …): naming, checking and loading them, and calling them for rows."""

from __future__ import annotations

import asyncio
import inspect
import logging
import types
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from operator import length_hint
from typing import Any, NamedTuple, NoReturn

from aaiclick.backend import is_local
from aaiclick.data.typing.schema import VALUE
from aaiclick.data.typing.types import clock_of_type, read_type
from aaiclick.errors import EntrypointError, InputError, SignatureMismatch
from aaiclick.orchestration.decorators import TaskFactory
from aaiclick.orchestration.rules.naming.executor_names import PYTHON
from aaiclick.orchestration.rules.validation import shorten
from aaiclick.orchestration.submitting.entrypoints import entrypoint_of, kind_of, path_of, resolve, unwrap
from aaiclick.orchestration.submitting.executors import executor_in

log = logging.getLogger("aaiclick")

Callback = str | Callable[..., Any]
"""A function, a function marked `@task`, or its importable name."""

ROWS_AWAITED = 16
"""How many calls of an `async def` callback run at the same time for the rows of a part."""

_OPTIONS = ("retry", "max_retries", "timeout_s", "priority")


# ---------------------------------------------------------------- where it is given


def name_callback(callback: Callback, given: int, args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """Return the entrypoint of a callback; raise an error if it does not accept `given` values and these arguments.

    As for tasks, a module that is missing here may exist where workers run: that gives a warning, except in local mode.
    """
    name = path_of(callback)
    try:
        function = load_callback(name).function
    except EntrypointError as error:
        if is_local() or not isinstance(error.__cause__, ModuleNotFoundError):
            raise
        log.warning("%s Workers must be able to import it.", error)
        return name
    _refuse_generator(name, function)
    _check_arguments(name, function, given, args, kwargs)
    return name


def _refuse_generator(name: str, function: Any) -> None:
    """Refuse a generator function: a call runs none of its body, and the generator it returns is true.

    `foreach` would do nothing, and `filter` would keep every row.
    """
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        cause = "it is a generator function: a call for a row would run nothing"
        raise EntrypointError(entrypoint=name, cause=cause, hint="Return a value, or a list of values.")


def _check_arguments(
    name: str, function: Any, given: int, args: Sequence[object], kwargs: Mapping[str, object]
) -> None:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # it has no signature that Python can tell
        return
    try:
        signature.bind(*[None] * given, *args, **kwargs)
    except TypeError as error:
        values = {1: "the row", 2: "the partition and the output"}[given]
        cause = f"it is called with {values}, {len(args)} of args and {len(kwargs)} of kwargs: {error}"
        text = shorten(str(signature), 300).strip("'\"")
        raise SignatureMismatch(entrypoint=name, cause=cause, signature=text, hint="") from None


def refuse_nothing(callback: Callback) -> None:
    """Raise EntrypointError if the annotation of a callback of `map` says that it returns None."""
    annotations = getattr(unwrap(callback), "__annotations__", {})
    if annotations.get("return", typing.Any) in (None, "None"):
        cause = "map needs its result, and it returns None"
        raise EntrypointError(entrypoint=entrypoint_of(callback), cause=cause, hint="Use foreach.")


# ---------------------------------------------------------------- where it is called


class Loaded(NamedTuple):
    """A callback that was imported by its name."""

    name: str
    function: Callable[..., Any]
    options: dict[str, Any]
    """The options of its `@task` that also apply to the tasks that call it (_OPTIONS)."""

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)


def load_callback(name: str) -> Loaded:
    """Import the callback of this name."""
    found = resolve(name)
    if kind_of(found) == "job":
        raise EntrypointError(
            entrypoint=name, cause="it is a workflow (@job), not a task", hint="Give a function, or a @task."
        )
    if (executor := executor_in(found)) != PYTHON:
        cause = f"it runs by the executor {executor}, and operators call Python functions"
        raise EntrypointError(entrypoint=name, cause=cause, hint="Make a task of it for each part.")
    options = {option: getattr(found, option) for option in _OPTIONS} if isinstance(found, TaskFactory) else {}
    return Loaded(name, unwrap(found), options)


def returned_fields(function: Callable[..., Any], *, drop_none: bool = False) -> dict[str, str]:
    """Return the columns and types that a function's return annotation gives; {} if it does not give all of them.

    A TypedDict gives names and types, any other type is that of a single value. With `drop_none`, None is left out of
    the annotation first. `datetime` gives {}, because it does not say whether the values have a time zone.
    """
    try:
        hint = typing.get_type_hints(function).get("return", typing.Any)
    except (NameError, TypeError, AttributeError):  # names that exist for type checkers only
        return {}
    hint = _without_none(hint) if drop_none else hint
    try:
        if typing.is_typeddict(hint):
            found = {name: read_type(kind) for name, kind in typing.get_type_hints(hint).items()}
        else:
            found = {} if _has_columns(hint) else {VALUE: read_type(hint)}
    except (InputError, NameError):
        return {}
    return {} if any(map(clock_of_type, found.values())) else found


def _without_none(hint: Any) -> Any:
    """Return the other type of an Optional (`int` for `int | None`), and any other annotation unchanged."""
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint
    left = [each for each in typing.get_args(hint) if each is not types.NoneType]
    return left[0] if len(left) == 1 else hint


def _has_columns(hint: object) -> bool:
    """Return whether the type is a mapping: its values are rows with column names, which the type does not give."""
    origin = typing.get_origin(hint) or hint
    return isinstance(origin, type) and issubclass(origin, Mapping)


# ---------------------------------------------------------------- calls


async def call_once(callback: Loaded, *given: object, **named: object) -> Any:
    """Call the callback once and return its value. A plain function runs on a thread, to keep the event loop free."""
    if callback.is_async:
        return await callback.function(*given, **named)
    returned = await _on_thread(callback, lambda: callback.function(*given, **named))
    return await returned if inspect.isawaitable(returned) else returned


async def call_for_rows(
    callback: Loaded,
    rows: list[Any],
    first: int,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    *,
    kept: bool = False,
) -> list[Any]:
    """Call the callback for each row and return the values in the order of the rows. An error names its row in a note.

    A plain function is called for one row after the other, on a thread. Of an `async def`, ROWS_AWAITED calls run at
    the same time, and so do coroutines that a plain function returns. With `kept`, only the first value is checked for
    being a coroutine: the values are stored, and storing refuses a later coroutine. Otherwise all values are checked,
    because a coroutine would count as true.
    """
    if callback.is_async:
        function = callback.function
        return await _await_for_rows(callback, rows, first, lambda at: function(rows[at], *args, **kwargs))
    returned: list[Any] = await _on_thread(callback, lambda: _call_for_rows(callback, rows, first, args, kwargs))
    if types.CoroutineType not in set(map(type, returned[:1] if kept else returned)):
        return returned
    try:
        return await _await_for_rows(callback, rows, first, lambda at: _value_of(returned[at]))
    finally:
        for each in returned:
            if isinstance(each, types.CoroutineType):
                each.close()  # avoids warnings about coroutines that were never awaited


async def _value_of(given: Any) -> Any:
    return await given if isinstance(given, types.CoroutineType) else given


async def _on_thread(callback: Loaded, call: Callable[[], Any]) -> Any:
    """Call on a thread. StopIteration becomes a RuntimeError: a future cannot carry it, and the caller would hang."""

    def work() -> Any:
        try:
            return call()
        except StopIteration as error:
            raised = RuntimeError(f"{callback.name} raised StopIteration")
            for note in getattr(error, "__notes__", ()):
                raised.add_note(note)
            raise raised from error

    return await asyncio.to_thread(work)


def _call_for_rows(
    callback: Loaded, rows: list[Any], first: int, args: Sequence[object], kwargs: Mapping[str, object]
) -> list[Any]:
    function, left = callback.function, iter(rows)
    try:
        if kwargs:
            return [function(row, *args, **kwargs) for row in left]
        return [function(row, *args) for row in left] if args else [function(row) for row in left]
    except Exception as error:
        _note_row(error, callback, rows, first, len(rows) - length_hint(left) - 1)
        raise


async def _await_for_rows(
    callback: Loaded, rows: list[Any], first: int, start: Callable[[int], Awaitable[Any]]
) -> list[Any]:
    """Await `start(at)` for each row and return the values. The first error cancels all other calls, and is raised.

    A few tasks take one row after the other from a common iterator, which is cheaper than one asyncio task per row.
    """
    returned: list[Any] = [None] * len(rows)
    left = iter(range(len(rows)))
    failed: list[BaseException] = []

    async def take() -> None:
        for at in left:
            if failed:
                return
            try:
                returned[at] = await start(at)
            except BaseException as error:  # raised below: a SystemExit in an asyncio task would end the event loop
                if not failed:
                    _note_row(error, callback, rows, first, at)
                failed.append(error)
                for each in takers:
                    each.cancel()

    takers = [asyncio.ensure_future(take()) for _ in range(min(ROWS_AWAITED, len(rows)))]
    try:
        await asyncio.wait(takers)
    except asyncio.CancelledError as error:
        failed.append(error)
        for each in takers:
            each.cancel()
        await asyncio.wait(takers)
        raise
    if failed:
        raise failed[0]
    return returned


def _note_row(error: BaseException, callback: Loaded, rows: list[Any], first: int, at: int) -> None:
    error.add_note(f"{callback.name} was called for row {first + at} (counted from 0): {shorten(rows[at])}")


def refuse_returned(callback: Loaded, cause: str, hint: str) -> NoReturn:
    """Raise EntrypointError, which is never retried: another attempt would return the same."""
    raise EntrypointError(entrypoint=callback.name, cause=cause, hint=hint)
