"""Functions that are called for rows: how they are named, checked and found again, what they return, and the calls."""

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
from aaiclick.orchestration.rules.validation import shorten
from aaiclick.orchestration.submitting.entrypoints import entrypoint_of, kind_of, path_of, resolve, unwrap

log = logging.getLogger("aaiclick")

Callback = str | Callable[..., Any]
"""A function, one marked `@task`, or the name by which it is imported."""

ROWS_AWAITED = 16
"""Rows of a part for which an `async def` is under way at the same time."""

_OPTIONS = ("retry", "max_retries", "timeout_s", "priority")


# ---------------------------------------------------------------- where it is given


def name_callback(callback: Callback, given: int, args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """The name by which a worker finds the callback, which can be called with so many values and these arguments.

    As for tasks: a module that is missing here may be there where workers run elsewhere.
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
    """A call of such a function does nothing yet: `foreach` would do nothing at all, `filter` would keep every row."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        cause = "it has yield: calling it for a row does nothing and gives a generator"
        raise EntrypointError(entrypoint=name, cause=cause, hint="Return a value, or a list of values.")


def _check_arguments(
    name: str, function: Any, given: int, args: Sequence[object], kwargs: Mapping[str, object]
) -> None:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # Python knows of none
        return
    try:
        signature.bind(*[None] * given, *args, **kwargs)
    except TypeError as error:
        values = {1: "the row", 2: "the partition and the output"}[given]
        cause = f"it is called with {values}, {len(args)} of args and {len(kwargs)} of kwargs: {error}"
        text = shorten(str(signature), 300).strip("'\"")
        raise SignatureMismatch(entrypoint=name, cause=cause, signature=text, hint="") from None


def refuse_nothing(callback: Callback) -> None:
    """Refuse a function whose annotation says that it returns None, where that is needed."""
    annotations = getattr(unwrap(callback), "__annotations__", {})
    if annotations.get("return", typing.Any) in (None, "None"):
        cause = "map needs what it returns, and it returns None"
        raise EntrypointError(entrypoint=entrypoint_of(callback), cause=cause, hint="Use foreach.")


# ---------------------------------------------------------------- where it is called


class Loaded(NamedTuple):
    """A callback that was found."""

    name: str
    function: Callable[..., Any]
    options: dict[str, Any]
    """Those of `@task` that hold for the tasks that call it."""

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)


def load_callback(name: str) -> Loaded:
    """The function of this name; its module is imported."""
    found = resolve(name)
    if kind_of(found) == "job":
        raise EntrypointError(entrypoint=name, cause="it is a workflow (@job)", hint="Give a function, or a @task.")
    options = {option: getattr(found, option) for option in _OPTIONS} if isinstance(found, TaskFactory) else {}
    return Loaded(name, unwrap(found), options)


def returned_fields(function: Callable[..., Any], *, drop_none: bool = False) -> dict[str, str]:
    """The columns that the annotation of what it returns tells; none if that does not tell enough.

    With `drop_none`, what it tells besides None.

    A TypedDict tells names and types, any other type that of a single value. `datetime` does not tell whether it has a
    zone: the values do.
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
    """What is left of `int | None`."""
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint
    left = [each for each in typing.get_args(hint) if each is not types.NoneType]
    return left[0] if len(left) == 1 else hint


def _has_columns(hint: object) -> bool:
    """Whether values of this type are rows with names; of which names, it does not say."""
    origin = typing.get_origin(hint) or hint
    return isinstance(origin, type) and issubclass(origin, Mapping)


# ---------------------------------------------------------------- calls


async def call_once(callback: Loaded, *given: object, **named: object) -> Any:
    """What it returns; a plain function runs on a thread, so that others go on."""
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
    """What it returns for each row, in their order. An error is told with the number of its row.

    A plain function is called for one row after the other; of coroutines, several are under way at the same time.
    A plain function may give some as well. Where values are `kept`, only the first is looked at: a later one among them
    is refused as a value, and nobody takes it for true.
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
                each.close()  # those that were not begun


async def _value_of(given: Any) -> Any:
    return await given if isinstance(given, types.CoroutineType) else given


async def _on_thread(callback: Loaded, call: Callable[[], Any]) -> Any:
    """What a call gives. StopIteration cannot pass through a future: whoever waits would wait for ever."""

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
    """What comes of the coroutines for these rows. The first error ends it: no other row is begun, those begun end.

    Each of some takes the next row when it is done with one: that costs hardly more than one after the other.
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
            except BaseException as error:  # told below: SystemExit would end the loop, and not this alone
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
    """What a callback did would be the same in another attempt."""
    raise EntrypointError(entrypoint=callback.name, cause=cause, hint=hint)
