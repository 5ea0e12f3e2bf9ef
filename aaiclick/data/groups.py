"""The result of `group_by`: groups of rows, and their totals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from aaiclick.data.compiling.alignment import columns_to_sum
from aaiclick.data.display import glimpse
from aaiclick.data.frames import Frame, Query
from aaiclick.data.operations import AGGREGATES, WINDOWS
from aaiclick.data.query.column_terms import Term, col, lit
from aaiclick.data.query.expressions import Column, Expression, call, check_no_window
from aaiclick.data.query.other_names import hint
from aaiclick.data.query.relations import Aggregate, Relation, own_columns
from aaiclick.data.query.total_methods import BY_NAME, Totals
from aaiclick.data.query.window_methods import Windows
from aaiclick.data.verbs.choosing import first_of_each
from aaiclick.data.verbs.operands import bind, check_columns, check_count, check_seen, filtered, flat, new_name, settle
from aaiclick.errors import InputError
from aaiclick.urls import shown

if TYPE_CHECKING:
    from aaiclick.data.methods import GroupTotals
else:
    GroupTotals = object


class Grouped(Query):
    """A query with one row of totals for each group."""

    __slots__ = ()

    def having(self, *conditions: Any) -> Frame:
        """Keep the groups for which all conditions are true."""
        return self.where(*conditions)


class Groups(GroupTotals):
    """The rows of a frame, grouped by the values of columns or terms."""

    def __init__(
        self, frame: Frame, keys: Sequence[Any], conditions: Sequence[Any] = (), named: Mapping[str, Any] | None = None
    ) -> None:
        self._frame, self._conditions = frame, tuple(conditions)
        keys = flat(keys)
        for key in keys:
            if not isinstance(key, str | Term | Frame):
                rule = "it must be a column's name, a term, or a column"
                raise InputError(field="group_by", value=glimpse(key), rule=rule, hint="Give the name of a column.")
        if check_seen(frame, [key for key in keys if isinstance(key, str)]):
            keys = [col(key) if isinstance(key, str) else key for key in keys]
        self._keys = {_name(key, number): key for number, key in enumerate(keys)}
        for name, key in (named or {}).items():
            if new_name(name) in self._keys:
                raise InputError(
                    field="group_by", value=name, rule="a key has this name already", hint="Choose another name."
                )
            self._keys[name] = col(key) if isinstance(key, str) and key != name else key
        check_columns(frame.columns, (key for key in self._keys.values() if isinstance(key, str)))

    def agg(self, given: Mapping[str, Any] | None = None, /, **columns: Any) -> Grouped:
        """Compute totals, which are given by names of functions or as terms.

        Examples: agg({"price": "sum"}), agg({"price": ["min", "max"]}), agg(total=("price", "sum")).
        """
        if given is not None and not isinstance(given, Mapping):
            hint = "Write agg(total=col('x').sum())."
            raise InputError(field="agg", value=shown(repr(given)), rule="each total needs a name", hint=hint)
        wanted: dict[str, Any] = {}
        for name, functions in (given or {}).items():
            for function in [functions] if isinstance(functions, str) else functions:
                called = name if isinstance(functions, str) else f"{name}_{function}"
                _check_once(called, wanted)
                wanted[called] = (name, function)
        for name in columns:
            _check_once(name, wanted)
        wanted |= columns
        if not wanted and not self._keys:
            raise InputError(field="agg", value="nothing", rule="name at least one total", hint="")
        base, mine, keys = self._base(wanted.values())
        totals = {new_name(name): self._total(name, what, mine) for name, what in wanted.items()}
        if clash := keys.keys() & totals.keys():
            rule = "a key has this name already"
            raise InputError(field="agg", value=", ".join(sorted(clash)), rule=rule, hint="Choose another name.")
        found = Grouped(self._frame._context, Aggregate(base, keys, totals), "table" if keys else "record")
        if not self._conditions:
            return found
        return Grouped(found._context, filtered(found, self._conditions), found.shape)

    def having(self, *conditions: Any) -> Groups:
        """Keep the groups for which all conditions are true; they apply to the totals that are computed next."""
        return Groups(self._frame, (), (*self._conditions, *conditions), named=self._keys)

    def head(self, count: int = 5, *, order_by: Any, descending: bool | Sequence[bool] = False) -> Query:
        """Return the first `count` rows of each group in this order: the rows themselves, not totals."""
        if self._conditions or not self._keys:
            rule = "it cannot follow having()"
            raise InputError(field="head", value="these groups", rule=rule, hint="Use where() on the rows.")
        within, order = tuple(self._keys.values()), flat((order_by,))
        first = first_of_each(self._frame, within, order, descending, check_count(count, "head"))
        return self._frame._query(first)

    def top(self, count: int, by: Any) -> Query:
        """Return the `count` rows of each group with the greatest values of `by`."""
        return self.head(count, order_by=by, descending=True)

    def __getitem__(self, chosen: Any) -> NoReturn:
        """Raise InputError: groups have no columns, totals name theirs."""
        hint = "Write group_by(…).sum('x'), or agg(total=('x', 'sum'))."
        raise InputError(
            field="groups", value=shown(repr(chosen)), rule="columns of groups are named inside totals", hint=hint
        )

    __iter__ = None
    """Groups cannot be iterated: compute totals of them."""

    def count(self, name: str = "count", *, where: Any = None) -> Grouped:
        """Count the rows of each group; with `where`, only those for which it is true."""
        return self.agg(**{name: "count" if where is None else lit(1).count(where=where)})

    if not TYPE_CHECKING:  # type checkers get a list of the methods, so that they find misspelt names

        def __getattr__(self, name: str) -> Callable[..., Grouped]:
            if name not in AGGREGATES and name not in BY_NAME:
                raise AttributeError(f"there is no total {name!r}. {_meant(name)}")
            return partial(self._one, name)

    def _one(self, function: str, *names: str, **choices: Any) -> Grouped:
        """Compute one kind of total, of these columns or of all columns that are not keys."""
        chosen = names or [name for name in self._frame.columns if name not in self._keys]
        if function in AGGREGATES and not choices and AGGREGATES[function].most == 1:
            return self.agg(dict.fromkeys(chosen, function))
        return self.agg(**{name: getattr(col(name), function)(**choices) for name in chosen})

    def _base(self, wanted: Any) -> tuple[Relation, Mapping[str, Expression], dict[str, Expression]]:
        """Return the rows to group, their columns and the keys.

        Where keys and totals are given by names of columns alone, the query has one level less.
        """
        frame = self._frame
        plain = all(isinstance(key, str) for key in self._keys.values())
        if not plain or any(isinstance(each, Term) for each in wanted):
            bound = [bind(frame, col(key) if isinstance(key, str) else key) for key in self._keys.values()]
            relation, values = settle(frame, bound, windows=False)
            return relation, own_columns(relation), dict(zip(self._keys, values, strict=True))
        base, columns = columns_to_sum(frame._relation)
        return base, columns, {name: columns[name] for name in self._keys}

    def _total(self, name: str, what: Any, mine: Mapping[str, Expression]) -> Expression:
        if isinstance(what, Term):
            value = bind(self._frame, what).value
            check_no_window([value], "agg", "a window inside a total is not allowed")
            return value
        if isinstance(what, str) and what == "count":
            return call("count", AGGREGATES["count"]._replace(sql="count()", least=0))
        column, function = what if isinstance(what, tuple) and len(what) == 2 else (name, what)
        check_columns(self._frame.columns, [column])
        if not isinstance(function, str) or function not in AGGREGATES:
            rule = f"it must be one of {', '.join(AGGREGATES)}"
            raise InputError(field="total", value=repr(function), rule=rule, hint=_of_text(function))
        return call(function, AGGREGATES[function], mine[column])


def _check_once(name: str, wanted: Mapping[str, Any]) -> None:
    if name in wanted:
        raise InputError(field="agg", value=shown(repr(name)), rule="two totals would have the same name", hint="")


def _name(key: Any, number: int) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, Term) and isinstance(key.expression, Column):
        return key.expression.name
    if isinstance(key, Frame) and len(key.columns) == 1:
        return key.columns[0]
    return f"key{number}"


def _meant(name: str) -> str:
    """Return a hint for a name that is no total."""
    if (name in WINDOWS or name in vars(Windows)) and name != "cumcount":
        return f"It computes over several rows. Write with_columns(name=col('x').{name}(…).over('key', order_by=…))."
    if name in ("cumcount", "ngroup", "nth", "pipe", "apply", "transform"):
        return hint(name, []) or "Number the rows with with_columns(number=row_number().over('key', order_by=…))."
    if hasattr(Totals, name):
        return f"Write a term: agg(name=col('x').{name}(…))."
    if name == "size":
        return "Use count()."
    if name in ("tail", "nsmallest", "sample"):
        return "Use head(count, order_by=…, descending=…) or top(count, by)."
    return hint(name, [*AGGREGATES, *BY_NAME, *dir(Groups)])


def _of_text(function: object) -> str:
    if not isinstance(function, str):
        return ""
    return f"Write a term: name=col('x').{function}(…)." if hasattr(Term, function) else hint(function, AGGREGATES)
