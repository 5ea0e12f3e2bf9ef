"""One thing that can be done to values, and the usual ways to write it down."""

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
    """What the page of functions says of one: in words, and by an example that a test runs."""

    what: str
    given: str
    """Values, or a table if the call begins with a column."""
    call: str
    gives: str


class Operation(NamedTuple):
    """One thing that can be done to values."""

    sql: str
    """With every argument in its place; `{args}` stands for all that are left."""
    least: int = 1
    most: int = 1
    truth: bool = False
    """Its answer is true or false."""
    truth_sql: str | None = None
    """What to say instead when every argument is known to be true or false."""
    alike: slice = slice(0)
    """The arguments that its answer is one of: if these are true or false, so is the answer."""
    many: bool = False
    """It looks at many rows. With `over`, `{over}` is where the rows around are told; otherwise at the end."""
    frame: str | None = None
    """Which rows around are seen with an order; without it, those up to the row itself."""
    times: slice = slice(0)
    """The arguments whose times its answer is one of, besides those of `alike`."""
    cancels: bool = False
    """Of two times its answer is none."""
    compares: bool = False
    """A text beside a time is read as one."""
    apart: bool = False
    """Its arguments have nothing to do with each other: one may be a time with a zone and another without."""
    takes: Clock = ""
    """What its first argument must be, if it is known."""
    makes: Clock = ""
    """What its answer is."""
    sorts: Literal["", "up", "down"] = ""
    """With `over`, rows are in the order of its first argument."""
    ordered: bool = False
    """With `over`, it means nothing without an order."""
    rolls: bool = False
    """With `over`, it is of the last rows in an order."""
    within: timedelta | int | None = None
    """If it rolls: of those that are less than so much before."""
    typed: Typing | None = None
    """Says it by the types of the arguments, and tells the type of the answer; without it, that is not known."""
    wrapping: Typing | None = None
    """The same without checks: what `wrapping()` asks for."""
    timed: Typing | None = None
    """What `typed` is where an argument is a time."""
    deciding: slice = slice(0)
    """The arguments that its answer is not made of, but that decide which values count, or in which order."""
    element: str = ""
    """What an element of its first argument, a list, is called in its second, which is computed of each."""
    make: Callable[..., Operation | Applied] | None = None
    """Makes the operation from what is written in parentheses, where that says more than a column can."""
    told: Told | None = None

    def telling(self, what: str, given: str, call: str, gives: str) -> Operation:
        """The same, described, with an example."""
        return self._replace(told=Told(what, given, call, gives))


class Applied(NamedTuple):
    """An operation, and what it is applied to besides the column itself."""

    operation: Operation
    operands: tuple[Any, ...] = ()


class Body(NamedTuple):
    """A function of Python that says what is done with each element of a list."""

    function: Callable[[Any], Any]
    element: str


def made(make: Callable[..., Operation | Applied], *told: str) -> Operation:
    """An operation that is made of what is written in parentheses."""
    return Operation("", make=make, told=Told(*told))


def check_kind(function: str, value: object, wanted: type, rule: str) -> Any:
    """A constant of this type, or a refusal; a truth is no number."""
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise InputError(field=function, value=shown(repr(value)), rule=rule, hint="")
    return value


def two(sql: str, truth_sql: str | None = None, typed: Typing | None = None) -> Operation:
    return Operation(sql, 2, 2, truth_sql=truth_sql, typed=typed)


def gives(sql: str, kind: Type, least: int = 1, most: int | None = None) -> Operation:
    """Its answer is of one type, or None."""
    typing = always(kind)(sql)
    return Operation(sql, least, most or least, typed=typing, timed=typing)


def same_as_first(sql: str, least: int = 1, most: int = 1) -> Operation:
    """Its answer is of the type of its first argument."""
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
    """A total that is one of the values, or None."""
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
    """The same, refused of values that are known to be no numbers."""
    typing = operation.typed

    def words(kinds: Sequence[Kind]) -> Worded | None:
        kind = kinds[0]
        if not (kind is None or kind == NULL or is_whole(kind) or is_decimal(kind) or is_float(kind)):
            raise InputError(field=name, value=str(kind), rule="it is computed of numbers", hint=hint)
        return None if typing is None else typing(kinds)

    return operation._replace(typed=words, timed=words)


def of_times_too(operation: Operation) -> Operation:
    """The same, said by the types of times as it is by others."""
    return operation._replace(timed=operation.typed)


# ---------------------------------------------------------------- of some of the rows


def only_where(operation: Operation, place: int) -> Operation:
    """The same total, of the rows for which the argument at this place is true."""
    clause = f" FILTER (WHERE toBool({{{place}}}))"

    def marked(text: str) -> str:
        return text.replace("{over}", f"{clause}{{over}}") if "{over}" in text else f"{text}{clause}{{over}}"

    deciding = slice(place, None) if operation.deciding == slice(0) else operation.deciding
    return _said(operation, marked, place)._replace(least=place + 1, most=place + 1, deciding=deciding)


def framed(operation: Operation, frame: str, least: int) -> Operation:
    """The same total, of the rows in a frame around each; None where fewer values than `least` are there.

    A list of them, which cannot be None, is what it is.
    """

    def enough(text: str) -> str:
        return f"if(count({{0}}){{over}} >= {least}, {_placed(text)}, NULL)" if least > 0 else _placed(text)

    found = _said(operation, enough, operation.most, may_lack=least > 0)
    return found._replace(frame=frame)


def _placed(text: str) -> str:
    return text if "{over}" in text else f"{text}{{over}}"


def _said(operation: Operation, rewrite: Callable[[str], str], count: int, *, may_lack: bool = False) -> Operation:
    """The same operation in other words, by the types of so many arguments."""

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
    return operation._replace(sql=rewrite(operation.sql), typed=typed, timed=timed, wrapping=wrapping)
