"""Operators and methods that make expressions; all of them come from the table in `operations`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from aaiclick.data.operations import AGGREGATES, FUNCTIONS, NESTED, OPERATORS, Applied, Body, Operation
from aaiclick.data.parsing.exact_casts import parsed
from aaiclick.data.query.accessors import ACCESSORS, Accessor
from aaiclick.data.query.expressions import Call, Element, Expression, Over, call, cast, member, walk, wrapping
from aaiclick.data.query.other_names import hint
from aaiclick.data.query.relations import column_of
from aaiclick.data.typing.types import read_type
from aaiclick.errors import InputError
from aaiclick.urls import shown

Made = TypeVar("Made")
"""The type of the expressions that this kind of column makes."""

if TYPE_CHECKING:
    from aaiclick.data.methods import Functions
else:

    class Functions(Generic[Made]):
        """The operators and functions of the table: declared in `methods.pyi`, at run time provided below."""


Make = Callable[..., Expression]
"""A function from the expressions of the operands to an expression."""

_SIGNS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
_UNARY = ("neg", "pos", "abs", "invert")


class Operators(Functions[Made]):
    """The operators (`+`, `<`, `&` …) and functions that every kind of column has."""

    __array_ufunc__ = None
    """None makes numpy's numbers return NotImplemented, so that Python calls the reflected operator here."""

    def _combine(self, make: Make, *others: Any) -> Made:
        """Apply `make` to the expression of this column and of `others`."""
        raise NotImplementedError

    def _method(self, name: str) -> Callable[..., Made]:
        """Return the function `name` of the table, bound to this column; raise AttributeError if there is none."""
        operation = FUNCTIONS.get(name)
        if operation is None:
            told = f"{type(self).__name__} has no attribute {name!r}, and there is no function of this name"
            raise AttributeError(f"{told}. {hint(name, dir(self))}" if not name.startswith("_") else told)
        if operation.make is not None:
            return partial(self._made, name, operation.make)
        return partial(self._combine, partial(call, name, operation))

    def _made(self, name: str, make: Callable[..., Operation | Applied], *given: Any, **named: Any) -> Made:
        """Apply an operation that `make` builds from the call's arguments, such as a pattern or a Python function."""
        found = make(*given, **named)
        applied = found if isinstance(found, Applied) else Applied(found)
        operands = (self._body(name, each) if isinstance(each, Body) else each for each in applied.operands)
        return self._combine(partial(call, name, applied.operation), *operands)

    def _term(self, expression: Expression) -> Any:
        """Wrap an expression as the term that a Python function of elements receives."""
        raise NotImplementedError

    def _body(self, name: str, body: Body) -> Any:
        """Call the Python function of `body` with a term for the element, and return the expression it gives.

        Aggregates and window functions in it raise InputError.
        """
        before = NESTED.set(NESTED.get() + 1)
        try:
            found = body.function(self._term(Element(body.element)))
        finally:
            NESTED.reset(before)
        inside = getattr(found, "expression", None)
        if inside is not None and any(isinstance(each, Over) or _is_total(each) for each in walk([inside])):
            rule = "totals and windows compute over rows, not over elements"
            raise InputError(field=name, value="its function", rule=rule, hint="")
        return found

    if not TYPE_CHECKING:  # `methods.pyi` declares each method, so that type checkers find misspelt names

        def __getattr__(self, name: str) -> Callable[..., Made]:
            return Accessor(name, dir(self)) if name in ACCESSORS else self._method(name)

    def __dir__(self) -> Iterable[str]:
        return sorted({*super().__dir__(), *FUNCTIONS, *AGGREGATES})

    def __bool__(self) -> bool:
        raise TypeError("a column is many values, neither true nor false: use & | ~ instead of and, or, not")

    def cast(self, kind: object) -> Made:
        """Convert to another type. A value that does not fit is an error; so is None, unless the type is Nullable."""
        wanted = read_type(kind)
        return self._combine(lambda value: cast(value, wanted))

    def wrapping(self) -> Made:
        """Let integers and sums beyond the range of their type wrap around, as they do in ClickHouse."""
        return self._combine(wrapping)

    def parse(self, kind: object) -> Made:
        """Parse texts as values of a type, by the rules for files; None where a text is no such value."""
        return self._combine(partial(call, "parse", parsed(read_type(kind))))

    def isin(self, values: Any) -> Made:
        """Return whether each value is among constants, or in the column of another Object; None for None."""
        if isinstance(values, str | bytes):
            raise InputError(field="isin", value=shown(repr(values)), rule="a text is not a list", hint="Give [text].")
        column = getattr(type(values), "_only_column", None)
        if column is None:
            if not hasattr(values, "__iter__"):
                raise InputError(field="isin", value=shown(repr(values)), rule="it is not a list", hint="Give [value].")
            constants = tuple(values)
            return self._combine(lambda value: member(value, constants))
        found = column(values)
        return self._combine(lambda value: member(value, found, column_of(found, found.names[0]).clock))


def _is_total(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.operation.many


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
setattr(Operators, "__hash__", object.__hash__)  # noqa: B010  # defining __eq__ removed it
