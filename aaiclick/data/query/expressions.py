"""Expressions of a query: columns, values, and operations on them, as plain data. `compiling` turns them into SQL."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from aaiclick.data.clocks import Clock, as_time, check_alike, check_taken, clock_of, common_clock
from aaiclick.data.operations import Operation
from aaiclick.data.typing.expression_types import BOOL, Kind, kind_of_value, like
from aaiclick.data.typing.grammar import parse
from aaiclick.errors import InputError

if TYPE_CHECKING:
    from aaiclick.data.query.relations import Relation


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column, by name, of the relation in which the expression is used."""

    name: str
    truth: bool = False
    clock: Clock = ""
    kind: Kind = None
    """Its type, or None if that is not known."""
    limit: int | None = None
    """As in Worded."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A constant."""

    value: object

    @property
    def truth(self) -> bool:
        return isinstance(self.value, bool)

    @property
    def clock(self) -> Clock:
        return clock_of(self.value)

    @property
    def kind(self) -> Kind:
        return kind_of_value(self.value)


@dataclass(frozen=True, slots=True, eq=False)
class Raw:
    """Verbatim SQL of trusted code."""

    sql: str
    truth: bool = False
    clock: Clock = ""
    kind: Kind = None


@dataclass(frozen=True, slots=True, eq=False)
class Element:
    """The element of a list, inside an expression that is computed for each element."""

    name: str
    truth: bool = False
    clock: Clock = ""
    kind: Kind = None


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """An operation applied to its arguments, with the SQL template chosen for their types."""

    operation: Operation
    args: tuple[Expression, ...]
    sql: str
    truth: bool
    depth: int
    clock: Clock = ""
    kind: Kind = None
    limit: int | None = None
    """As in Worded."""


@dataclass(frozen=True, slots=True, eq=False)
class Cast:
    """A value converted to another type; a value that does not fit is an error, never truncated."""

    value: Expression
    type: str
    depth: int
    truth: bool = False
    clock: Clock = ""

    @property
    def kind(self) -> Kind:
        return parse(self.type)


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """Whether a value is among others: constants, or the only column of a query."""

    value: Expression
    among: tuple[object, ...] | Relation
    depth: int
    beside: Clock = ""
    """The clock of the query's column: whether it holds times, and with a zone or without."""
    truth: bool = True
    clock: Clock = ""

    @property
    def kind(self) -> Kind:
        return like(BOOL, self.value.kind)

    @property
    def has_times(self) -> bool:
        """Whether a time is searched among times. Lists of times are compared unchanged."""
        if isinstance(self.among, tuple):
            return bool(self.value.clock) and any(isinstance(each, datetime) for each in self.among)
        return bool(self.value.clock and self.beside)


@dataclass(frozen=True, slots=True, eq=False)
class Over:
    """An aggregate or window function computed for each row over its window."""

    value: Call
    by: tuple[Expression, ...]
    order: tuple[Key, ...]
    depth: int

    @property
    def truth(self) -> bool:
        return self.value.truth

    @property
    def clock(self) -> Clock:
        return self.value.clock

    @property
    def kind(self) -> Kind:
        return self.value.kind


@dataclass(frozen=True, slots=True, eq=False)
class One:
    """The value of a query that gives one row of one column."""

    relation: Relation
    truth: bool = False
    clock: Clock = ""
    kind: Kind = None
    limit: int | None = None


Expression = Column | Value | Raw | Element | Call | Cast | Member | Over | One


@dataclass(frozen=True, slots=True)
class Key:
    """A sort key."""

    value: Expression
    descending: bool = False


DEPTH_MAX = 1_500
"""The limit of nested operations; a deeper expression is refused."""


def call(name: str, operation: Operation, *args: Expression) -> Call:
    """Apply an operation to arguments; raise InputError if it does not take that many."""
    if not operation.least <= len(args) <= operation.most:
        takes = f"{operation.least}" if operation.least == operation.most else f"{operation.least} to {operation.most}"
        rule = f"it takes {takes} arguments, {len(args)} were given"
        raise InputError(field="operation", value=name, rule=rule, hint="The column itself counts as one argument.")
    return _call(operation, args)


def stand_in(name: str, value: Expression) -> Column:
    """Return a column that stands for `value`, with the same truth, clock and type."""
    return Column(name, value.truth, value.clock, value.kind)


def cast(value: Expression, kind: str) -> Cast:
    """Convert a value to another type; raise InputError between times with a zone and times without."""
    wanted = parse(kind)
    check_alike("cast", value.clock, wanted.clock)
    return Cast(value, kind, deeper([value]), wanted.bare.name == "Bool", wanted.clock)


def member(value: Expression, among: tuple[object, ...] | Relation, beside: Clock = "") -> Member:
    """Test whether a value is among constants or among the values of a query, whose clock is `beside`."""
    if isinstance(among, tuple):
        if value.clock:
            among = tuple(map(as_time, among))
        check_alike("isin", value.clock, *map(clock_of, among))
    check_alike("isin", value.clock, beside)
    return Member(value, among, deeper([value]), beside)


def _call(operation: Operation, args: tuple[Expression, ...]) -> Call:
    args = _beside_times(operation, _with_element(operation, args))
    clocks = [arg.clock for arg in args]
    check_taken(operation.takes, clocks[0] if clocks else "")
    if not operation.apart:
        check_alike("operands", *clocks)
    sql, truth = operation.sql, operation.truth or _are_truths(args[operation.alike])
    if operation.truth_sql is not None and _are_truths(args):
        sql, truth = operation.truth_sql, True
    clock, kind = operation.makes or _clock(operation, clocks), _truth_kind(args) if truth else None
    typing, limit = operation.timed if any(clocks) else operation.typed, None
    if operation.limited is not None and not any(clocks):
        typing = operation.limited([arg.limit if isinstance(arg, Call | Column | One) else None for arg in args])
    if typing is not None and (args or not operation.most) and sql == operation.sql:
        worded = typing([arg.kind for arg in args])
        if worded is not None:
            sql, kind, limit = worded.sql, worded.kind or kind, worded.limit
    return Call(operation, args, sql, truth, deeper(args), clock, kind, limit)


def _with_element(operation: Operation, args: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Return the arguments, with the type of the list's elements set on the Element placeholders in them."""
    kind = args[0].kind if operation.element else None
    if kind is None or kind.bare.name != "Array":
        return args
    inside = kind.bare.parts[0]
    element = Element(operation.element, inside.bare.name == "Bool", inside.clock, inside)
    places = (each for each in walk(args[1:]) if isinstance(each, Element) and each.name == element.name)
    known: dict[int, Expression] = {id(each): element for each in places if each.kind != inside}
    return (args[0], *(replaced(arg, known) for arg in args[1:])) if known else args


def _truth_kind(args: tuple[Expression, ...]) -> Kind:
    kinds = [arg.kind for arg in args]
    return None if None in kinds else like(BOOL, *kinds)


def wrapping(expression: Expression) -> Expression:
    """Return the same expression with unchecked arithmetic: integers and sums wrap around as in ClickHouse."""
    made: dict[int, Expression] = {}
    for each in walk([expression]):
        new = _with_parts(each, tuple(made[id(part)] for part in parts_of(each)))
        if isinstance(new, Over):
            new = replace(new, value=_unchecked(new.value))
        made[id(each)] = _unchecked(new) if isinstance(new, Call) else new
    return made[id(expression)]


def _unchecked(call: Call) -> Call:
    plain = call.operation.wrapping
    return call if plain is None else _call(call.operation._replace(typed=plain, limited=None), call.args)


def _clock(operation: Operation, clocks: list[Clock]) -> Clock:
    """Return the clock of the result: whether it is a time, and with a zone or without."""
    if operation.cancels and all(clocks):
        return ""
    return common_clock([*clocks[operation.alike], *clocks[operation.times]])


def _beside_times(operation: Operation, args: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Convert constants that are compared with times into times.

    Raise InputError for a fractional float that is added to a time or subtracted from it.
    """
    if not (operation.compares or operation.cancels) or not any(arg.clock for arg in args):
        return args
    if operation.compares:
        return tuple(map(_timed, args))
    for arg in args:
        if isinstance(arg, Value) and isinstance(arg.value, float) and not arg.value.is_integer():
            rule = "ClickHouse moves times by whole seconds"
            raise InputError(field="operands", value=repr(arg.value), rule=rule, hint="")
    return args


def _timed(arg: Expression) -> Expression:
    return Value(as_time(arg.value)) if isinstance(arg, Value) else arg


def _are_truths(args: tuple[Expression, ...]) -> bool:
    """Return whether all arguments are booleans, ignoring None; False if there is nothing else."""
    known = [arg.truth for arg in args if not (isinstance(arg, Value) and arg.value is None)]
    return bool(known) and all(known)


def over(value: Expression, by: tuple[Expression, ...], order: tuple[Key, ...]) -> Over:
    """Compute an aggregate or window function over the rows with the same values of `by`."""
    if not isinstance(value, Call) or not value.operation.many:
        hint = "Compute with the result: col('a').sum().over('b') + 1."
        raise InputError(field="over", value="this term", rule="it must be a total or a window function", hint=hint)
    parts = [*value.args, *by, *(key.value for key in order)]
    check_no_window(parts, "over", "a window inside a window is not allowed")
    return Over(value, by, order, deeper(parts))


def check_no_window(expressions: Iterable[Expression], field: str, told: str) -> None:
    """Raise InputError for window functions where their value would be needed within the same step."""
    if any(isinstance(each, Over) for each in walk(expressions)):
        hint = "Make a column of it first: with_columns(step=….over(…)), then compute with col('step')."
        raise InputError(field=field, value=told, rule="it needs a step before it", hint=hint)


def deeper(args: Iterable[Expression]) -> int:
    """Return the depth of an expression with these arguments; raise InputError beyond DEPTH_MAX."""
    depth = 1 + max((depth_of(arg) for arg in args), default=0)
    if depth > DEPTH_MAX:
        hint = "Await a part of it first: that makes a table to continue from."
        raise InputError(field="expression", value=f"{depth} operations deep", rule=f"at most {DEPTH_MAX}", hint=hint)
    return depth


def depth_of(expression: Expression) -> int:
    return getattr(expression, "depth", 0)


def parts_of(expression: Expression) -> tuple[Expression, ...]:
    """Return the direct subexpressions."""
    match expression:
        case Call(args=args):
            return args
        case Cast(value=value) | Member(value=value):
            return (value,)
        case Over(value=value, by=by, order=order):
            return (*value.args, *by, *(key.value for key in order))
    return ()


def times_written(expression: Expression) -> Iterator[tuple[Expression, int]]:
    """Yield the direct subexpressions, each with the number of times that its SQL is written."""
    call = expression.value if isinstance(expression, Over) else expression
    if isinstance(expression, Cast):
        yield expression.value, 2 if parse(expression.type).is_nullable else 1
        return
    for number, part in enumerate(parts_of(expression)):
        yield part, max(1, call.sql.count(f"{{{number}}}")) if isinstance(call, Call) else 1


def walk(expressions: Iterable[Expression], known: Container[int] = ()) -> Iterator[Expression]:
    """Yield every subexpression once, parts before the whole; do not enter those whose id is in `known`."""
    seen: set[int] = set()
    stack = [(expression, False) for expression in reversed(list(expressions))]
    while stack:
        expression, done = stack.pop()
        if done:
            yield expression
            continue
        if id(expression) in seen or id(expression) in known:
            continue
        seen.add(id(expression))
        parts = parts_of(expression)
        if not parts:
            yield expression
            continue
        stack.append((expression, True))
        stack += [(part, False) for part in reversed(parts)]


def over_columns(expression: Expression, columns: Mapping[str, Expression]) -> Expression:
    """Return the same expression with each column replaced by the expression of its name in `columns`."""
    found = {id(each): columns[each.name] for each in walk([expression]) if isinstance(each, Column)}
    return replaced(expression, found)


def replaced(expression: Expression, known: Mapping[int, Expression]) -> Expression:
    """Return the same expression with subexpressions replaced; `known` maps ids of the old ones to the new."""
    made = dict(known)
    for each in walk([expression], known):
        parts = parts_of(each)
        new = tuple(made[id(part)] for part in parts)
        same = all(a is b for a, b in zip(parts, new, strict=True))
        made[id(each)] = each if same else _with_parts(each, new)
    return made[id(expression)]


def _with_parts(expression: Expression, parts: tuple[Expression, ...]) -> Expression:
    match expression:
        case Call(operation=operation):
            return _call(operation, parts)
        case Cast(type=kind):
            return cast(parts[0], kind)
        case Member(among=among, beside=beside):
            return member(parts[0], among, beside)
        case Over(value=value, by=by, order=order):
            first, last = len(value.args), len(value.args) + len(by)
            keys = tuple(replace(key, value=part) for key, part in zip(order, parts[last:], strict=True))
            return over(_call(value.operation, parts[:first]), parts[first:last], keys)
    return expression
