"""The messages for types that cannot be encoded: why not, and what to pass instead."""

from __future__ import annotations

import io
import threading
import types
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

# a bool is an int and a datetime is a date: the subclass comes first
_PLAIN = (
    str,
    bool,
    int,
    float,
    bytes,
    list,
    tuple,
    dict,
    set,
    frozenset,
    datetime,
    date,
    time,
    timedelta,
    Decimal,
    UUID,
)

_INSTEAD: tuple[tuple[tuple[type, ...], str], ...] = (
    ((io.IOBase,), "Pass its path, and open it in the task."),
    ((types.CoroutineType,), "Await it first."),
    ((types.GeneratorType, types.AsyncGeneratorType, map, filter, zip), "Pass a list of its items."),
    ((types.FunctionType, types.BuiltinFunctionType, types.MethodType, type), "Pass its import path as text."),
    ((type(threading.Lock()), type(threading.RLock())), "Make it inside the task."),
    ((memoryview,), "Pass bytes."),
    ((BaseException,), "Pass its text."),
)

_TABULAR = {"numpy", "pandas", "polars", "pyarrow"}


def why_not(kind: type) -> tuple[str, str]:
    """Return the rule that refuses the type, and a hint what to pass instead."""
    for plain in _PLAIN:
        if issubclass(kind, plain):
            return (
                f"its type {kind.__name__} would be lost",
                f"Pass a plain {plain.__name__}, or let register_type know the type.",
            )
    return f"{kind.__name__} is not a plain type", _instead(kind)


def _instead(kind: type) -> str:
    for kinds, hint in _INSTEAD:
        if issubclass(kind, kinds):
            return hint
    if kind.__module__.partition(".")[0] in _TABULAR:
        return "Pass an Object, or an array of numpy."
    return "Pass plain values and build it inside the task, or let register_type know the type."
