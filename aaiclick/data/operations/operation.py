"""The record that describes an operation on values, and constructors for the usual kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Literal, NamedTuple

from aaiclick.data.clocks import Clock
from aaiclick.data.typing.expression_types import (
    NULL,
    Kind,
    Typing,
    Worded,
    always,
    found,
    is_decimal,
    is_float,
    is_whole,
    maybe,
    same,
)
from aaiclick.data.typing.grammar import Type
from aaiclick.errors import InputError
from aaiclick.urls import shown

ALL_ROWS = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
SO_FAR = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
FIRST, OTHERS, ALL = slice(1), slice(1, None), slice(None)


class Told(NamedTuple):
    """An operation's entry in the reference page: a description, and an example that a test runs."""

    what: str
    given: str
    """The values of the example, or a table if the call begins with `col`."""
    call: str
    gives: str


class Operation(NamedTuple):
    """What an operation means and how it is written in SQL."""

    sql: str
    """The template, with a place for each argument; `{args}` stands for all remaining ones."""
    least: int = 1
    most: int = 1
    truth: bool = False
    """The result is a boolean."""
    truth_sql: str | None = None
    """The template to use when all arguments are known to be booleans."""
    alike: slice = slice(0)
    """The arguments of which the result is one: it is a boolean if they are, and has their clock."""
    many: bool = False
    """It reads many rows. `{over}` marks where the OVER clause goes; without the mark it is appended."""
    frame: str | None = None
    """The frame of the window; None for the default: up to the current row with an order, all rows without."""
    times: slice = slice(0)
    """The arguments, besides those of `alike`, from which the result takes its clock."""
    cancels: bool = False
    """Between two times, the result is not a time."""
    compares: bool = False
    """Constants beside a time are read as times."""
    apart: bool = False
    """Its arguments are unrelated: times with a zone and times without may occur together."""
    takes: Clock = ""
    """The clock that its first argument must have, where that is known."""
    makes: Clock = ""
    """The clock of the result."""
    sorts: Literal["", "up", "down"] = ""
    """The window is sorted by the first argument, ascending or descending."""
    ordered: bool = False
    """The window must have an order."""
    rolls: bool = False
    """It is computed over a rolling window, which must have an order."""
    within: timedelta | int | None = None
    """The length of a rolling window by time or number; None if it is given in rows."""
    typed: Typing | None = None
    """Chooses the SQL and the type of the result by the argument types; without it, the type is unknown."""
    wrapping: Typing | None = None
    """The same as `typed` without overflow checks, for `wrapping()`."""
    timed: Typing | None = None
    """Takes the place of `typed` where an argument is a time."""
    limited: Callable[[Sequence[int | None]], Typing] | None = None
    """Makes the typing that takes the place of `typed`, from the bounds of the arguments as in Worded."""
    deciding: slice = slice(0)
    """The arguments that do not enter the result but decide which values count, or their order. Provenance uses it."""
    element: str = ""
    """The lambda variable for an element of the first argument, a list; the second is computed for each element."""
    make: Callable[..., Operation | Applied] | None = None
    """Makes the operation from the call's arguments, for functions whose options are not columns."""
    told: Told | None = None

    def telling(self, what: str, given: str, call: str, gives: str) -> Operation:
        """Return the operation with its entry for the reference page."""
        return self._replace(told=Told(what, given, call, gives))


class Applied(NamedTuple):
    """An operation and its operands, besides the column itself."""

    operation: Operation
    operands: tuple[Any, ...] = ()


class Body(NamedTuple):
    """A Python function that is applied to a term for each element of a list."""

    function: Callable[[Any], Any]
    element: str


def made(make: Callable[..., Operation | Applied], *told: str) -> Operation:
    """Return a placeholder for an operation that `make` builds from the call's arguments."""
    return Operation("", make=make, told=Told(*told))


def check_kind(function: str, value: object, wanted: type, rule: str) -> Any:
    """Return a constant of the type `wanted`; raise InputError otherwise. A bool does not count as an int."""
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise InputError(field=function, value=shown(repr(value)), rule=rule, hint="")
    return value


def two(sql: str, truth_sql: str | None = None, typed: Typing | None = None) -> Operation:
    return Operation(sql, 2, 2, truth_sql=truth_sql, typed=typed)


def gives(sql: str, kind: Type, least: int = 1, most: int | None = None) -> Operation:
    """Return an operation with a result of type `kind`, or None where an argument is None."""
    typing = always(kind)(sql)
    return Operation(sql, least, most or least, typed=typing, timed=typing)


def same_as_first(sql: str, least: int = 1, most: int = 1) -> Operation:
    """Return an operation with a result of the type of its first argument."""
    return Operation(sql, least, most, typed=same(sql))


def condition(sql: str, least: int = 1, most: int | None = None) -> Operation:
    return Operation(f"toBool({sql})", least, most or least, truth=True)


def total(
    sql: str,
    arguments: int = 1,
    *,
    truth: bool = False,
    alike: slice = slice(0),
    times: slice = slice(0),
    deciding: slice = slice(0),
    typed: Typing | None = None,
) -> Operation:
    return Operation(
        sql,
        arguments,
        arguments,
        truth=truth,
        alike=alike,
        many=True,
        times=times,
        apart=True,
        deciding=deciding,
        typed=typed,
    )


def one_of(sql: str, arguments: int = 1) -> Operation:
    """Return an aggregate with one of the values as its result, or None."""
    return total(sql, arguments, alike=FIRST, typed=found(sql))


def window(
    sql: str,
    least: int = 1,
    most: int = 1,
    *,
    alike: slice = slice(0),
    frame: str | None = None,
    typed: Typing | None = None,
    ordered: bool = False,
) -> Operation:
    return Operation(sql, least, most, alike=alike, many=True, frame=frame, ordered=ordered, typed=typed)


def of_numbers(name: str, operation: Operation, hint: str = "") -> Operation:
    """Return the operation with a check: values known to be no numbers raise InputError."""
    typing = operation.typed

    def words(kinds: Sequence[Kind]) -> Worded | None:
        kind = kinds[0]
        if not (kind is None or kind == NULL or is_whole(kind) or is_decimal(kind) or is_float(kind)):
            raise InputError(field=name, value=str(kind), rule="it needs numbers", hint=hint)
        return None if typing is None else typing(kinds)

    return operation._replace(typed=words, timed=words)


def of_times_too(operation: Operation) -> Operation:
    """Return the operation with its `typed` used for times too."""
    return operation._replace(timed=operation.typed)


# ---------------------------------------------------------------- restricted to some rows


def only_where(operation: Operation, place: int) -> Operation:
    """Return the aggregate restricted to rows where the argument at `place` is true."""
    clause = f" FILTER (WHERE toBool({{{place}}}))"

    def marked(text: str) -> str:
        return text.replace("{over}", f"{clause}{{over}}") if "{over}" in text else f"{text}{clause}{{over}}"

    deciding = slice(place, None) if operation.deciding == slice(0) else operation.deciding
    return _said(operation, marked, place)._replace(least=place + 1, most=place + 1, deciding=deciding)


def framed(operation: Operation, frame: str, least: int) -> Operation:
    """Return the aggregate over the rows of `frame`; NULL where fewer than `least` values are present.

    An aggregate that gives a list, which cannot be NULL, ignores `least`.
    """

    def enough(text: str) -> str:
        return f"if(count({{0}}){{over}} >= {least}, {_placed(text)}, NULL)" if least > 0 else _placed(text)

    found = _said(operation, enough, operation.most, may_lack=least > 0)
    return found._replace(frame=frame)


def _placed(text: str) -> str:
    return text if "{over}" in text else f"{text}{{over}}"


def _said(operation: Operation, rewrite: Callable[[str], str], count: int, *, may_lack: bool = False) -> Operation:
    """Return the operation with its SQL rewritten; its typings see the types of the first `count` arguments only."""

    def with_types(typing: Typing | None) -> Typing | None:
        if typing is None:
            return None

        def words(kinds: Sequence[Kind]) -> Worded | None:
            worded = typing(kinds[:count])
            if worded is None:
                return None
            if may_lack and worded.kind is not None and worded.kind.name == "Array":
                return Worded(_placed(worded.sql), worded.kind)
            return Worded(rewrite(worded.sql), maybe(worded.kind) if may_lack else worded.kind)

        return words

    typed, timed, wrapping = map(with_types, (operation.typed, operation.timed, operation.wrapping))
    sql = rewrite(operation.sql)
    return operation._replace(sql=sql, typed=typed, timed=timed, wrapping=wrapping, limited=None)
