"""The signs and methods with which people write expressions; all of them come from the table in `operations`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from aaiclick.data import time_verbs
from aaiclick.data.expressions import Call, Expression, Value, call, cast, member, wrapping
from aaiclick.data.operations import AGGREGATES, FUNCTIONS, OPERATORS, Operation, bins
from aaiclick.data.other_names import hint
from aaiclick.data.relations import column_of
from aaiclick.data.types import read_type
from aaiclick.errors import InputError
from aaiclick.urls import shown

Made = TypeVar("Made")
"""What expressions of this kind of column are."""

if TYPE_CHECKING:
    from aaiclick.data.methods import Functions
else:

    class Functions(Generic[Made]):
        """The signs and functions of the table, told to checkers by `methods.pyi`; here they are made below."""


Make = Callable[..., Expression]
"""Makes an expression of the expressions of its operands."""

_SIGNS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
_UNARY = ("neg", "pos", "abs", "invert")


class Operators(Functions[Made]):
    """What columns of every kind have in common: signs (`+`, `<`, `&` …) and the functions of the table."""

    __array_ufunc__ = None
    """numpy's numbers leave it to us."""

    def _combine(self, make: Make, *others: Any) -> Made:
        """Apply `make` to this and others."""
        raise NotImplementedError

    def _method(self, name: str) -> Callable[..., Made]:
        """The function of this name, of this column."""
        operation = FUNCTIONS.get(name)
        if operation is None:
            told = f"{type(self).__name__} has no attribute {name!r}, and no function is called so"
            raise AttributeError(f"{told}. {hint(name, dir(self))}" if not name.startswith("_") else told)
        return partial(self._combine, partial(call, name, operation))

    if not TYPE_CHECKING:  # checkers are told of each method, so that they know a name that is none

        def __getattr__(self, name: str) -> Callable[..., Made]:
            return self._method(name)

    def __dir__(self) -> Iterable[str]:
        return sorted({*super().__dir__(), *FUNCTIONS, *AGGREGATES})

    def __bool__(self) -> bool:
        raise TypeError("a column is many values, neither true nor false: use & | ~ instead of and, or, not")

    def cast(self, kind: object) -> Made:
        """As another type; a value that does not fit is an error, and so is None, unless the type is Nullable."""
        wanted = read_type(kind)
        return self._combine(lambda value: cast(value, wanted))

    def wrapping(self) -> Made:
        """The same, but whole numbers and sums beyond the range of their type wrap around, as ClickHouse's do."""
        return self._combine(wrapping)

    def isin(self, values: Any) -> Made:
        """Whether each value is among these: constants, or the column of another Object. For None, None."""
        if isinstance(values, str | bytes):
            raise InputError(field="isin", value=shown(repr(values)), rule="one text is no list", hint="Give [text].")
        column = getattr(type(values), "_only_column", None)
        if column is None:
            constants = tuple(values)
            return self._combine(lambda value: member(value, constants))
        found = column(values)
        return self._combine(lambda value: member(value, found, column_of(found, found.names[0]).clock))

    def cut(self, edges: Sequence[Any], labels: Sequence[str | None] | None = None, *, right: bool = True) -> Made:
        """The label of the range that each value is in: up to the first edge, from there to the next … above the last.

        An edge belongs to the range below it, or above it with right=False. Without labels: '(0, 18]'.
        """
        operation = bins.cut(edges, labels, right=right)
        return self._combine(lambda value: call("cut", operation, value, *map(Value, edges)))

    def tz_localize(self, zone: str | None) -> Made:
        """Times without a zone as those of one, such as 'Europe/Rome'; with None, times as their own clocks show them.

        What the clocks of the zone leave out, or show twice, is refused.
        """
        return self._combine(partial(call, "tz_localize", time_verbs.localized(zone)))

    def tz_convert(self, zone: str) -> Made:
        """Times with a zone as the same moments of another."""
        return self._combine(partial(call, "tz_convert", time_verbs.converted(zone)))

    def strftime(self, form: str) -> Made:
        """Times as texts: '%Y-%m-%d %H:%M', with Python's codes."""
        return self._combine(partial(call, "strftime", time_verbs.written(form)))

    def start_of(self, unit: str) -> Made:
        """When the second, minute, hour or day of times began; of a week, month, quarter or year, its first day."""
        return self._combine(partial(call, "start_of", time_verbs.begun(unit)))


def _sign(name: str, operation: Operation, *, reflected: bool = False) -> Callable[..., Any]:
    def make(*operands: Expression) -> Call:
        return call(name, operation, *(operands[::-1] if reflected else operands))

    def method(self: Operators[Any], *others: Any) -> Any:
        return self._combine(make, *others)

    return method


for _name in (*_SIGNS, *_COMPARISONS, *_UNARY):
    setattr(Operators, f"__{_name}__", _sign(_name, OPERATORS[_name]))
for _name in _SIGNS:
    setattr(Operators, f"__r{_name}__", _sign(_name, OPERATORS[_name], reflected=True))
setattr(Operators, "__hash__", object.__hash__)  # noqa: B010  # defining == took it away
