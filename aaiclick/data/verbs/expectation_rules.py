"""The rules of `expect`: turns its arguments into conditions and totals that ClickHouse computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from aaiclick.data.compiling.select_sql import to_sql
from aaiclick.data.display import glimpse
from aaiclick.data.query.column_terms import Term
from aaiclick.data.query.expressions import Column, Expression, Raw, over_columns, walk
from aaiclick.data.query.relations import Relation, column_of, own_columns
from aaiclick.data.results.evaluation import Evaluation
from aaiclick.data.sql import quoting
from aaiclick.data.verbs.operands import check_columns
from aaiclick.errors import InputError
from aaiclick.telemetry.masks import mask_text
from aaiclick.urls import shown

SHOWN_BESIDE = 3
"""How many other columns are shown of a row that breaks `not_null`: the column itself would only show NULL."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One expectation: a condition that bad rows fulfil, or a number of the whole table and its limits."""

    name: str
    columns: tuple[str, ...]
    wanted: str
    bad: Expression | None = None
    """True for rows that break the rule; None if the rule is about the whole table."""
    total: str = ""
    """SQL of a number computed over the whole table; a NULL breaks the rule."""
    least: float | None = None
    most: float | None = None
    samples: tuple[str, ...] = ()
    """The columns that are shown of rows that break the rule."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The relation that is checked, and the ClickHouse types of its columns by name."""

    relation: Relation
    types: Mapping[str, str]

    def term(self, name: str) -> Term:
        """Return a column as a term; raise InputError if the relation has no such column."""
        check_columns(self.relation.names, [name])
        return Term(column_of(self.relation, name))


def rules_of(rows: Rows, given: Mapping[str, Any]) -> list[Rule]:
    """Return the rules for the arguments of `expect` that are not None; raise InputError if there are none."""
    found = [rule for name, value in given.items() if value is not None for rule in _KINDS[name](rows, value)]
    if not found:
        rule = f"name at least one of {', '.join(_KINDS)}"
        raise InputError(field="expect", value="nothing", rule=rule, hint='For example: expect(not_null="id").')
    return found


def _several(field: str, given: Any) -> list[tuple[str, ...]]:
    """Return tuples of column names: a name or a tuple of names is one rule, a list of them is several rules."""
    listed = given if isinstance(given, list) else [given]
    found = [(each,) if isinstance(each, str) else each for each in listed]
    if not found or not all(
        isinstance(each, tuple) and each and all(isinstance(n, str) for n in each) for each in found
    ):
        rule = "it must be a column's name, a list of names, or a tuple of names that belong together"
        raise InputError(field=field, value=glimpse(given), rule=rule, hint="")
    return found


def _by_column(field: str, given: Any, form: str) -> list[tuple[str, Any]]:
    if not isinstance(given, Mapping) or not given:
        raise InputError(field=field, value=glimpse(given), rule=f"it must be a dict: {form}", hint="")
    return list(given.items())


# ---------------------------------------------------------------- rules about rows


def _unique(rows: Rows, given: Any) -> list[Rule]:
    return [_unique_rule(rows, names) for names in _several("unique", given)]


def _unique_rule(rows: Rows, names: tuple[str, ...]) -> Rule:
    """The bad rows are those that share their key with others. A key that contains NULL is equal to none."""
    check_columns(rows.relation.names, names)
    keys = ", ".join(_key(name, rows.types[name]) for name in names)
    there = " AND ".join(f"isNotNull({quoting.name(name)})" for name in names)
    inner = f"SELECT {keys} FROM ({to_sql(rows.relation)}) WHERE {there} GROUP BY {keys} HAVING count() > 1"  # noqa: S608 (compiled)
    return Rule("unique", names, "once each", Raw(f"{there} AND ({keys}) IN ({inner})", truth=True), samples=names)


def _key(name: str, kind: str) -> str:
    """Return SQL of a column as a grouping key: NaN is equal to NaN, and -0.0 to 0.0."""
    quoted = quoting.name(name)
    bare = kind.removeprefix("Nullable(").removesuffix(")")
    if bare in ("Float32", "Float64"):
        return f"if(isNaN(assumeNotNull({quoted})), nan, assumeNotNull({quoted}) + 0.)"
    _refuse_floats("unique", name, kind)
    return f"assumeNotNull({quoted})"


def _refuse_floats(field: str, name: str, kind: str) -> None:
    if "Float" in kind:
        rule = f"its values are of type {shown(kind)}, in which equal numbers may be written differently"
        raise InputError(field=f"{field}, column {shown(name)}", value=shown(kind), rule=rule, hint="Cast it first.")


def _not_null(rows: Rows, given: Any) -> list[Rule]:
    return [_not_null_rule(rows, name) for names in _several("not_null", given) for name in names]


def _not_null_rule(rows: Rows, name: str) -> Rule:
    bad = rows.term(name).is_null()
    beside = [each for each in rows.relation.names if each != name][:SHOWN_BESIDE]
    return Rule("not_null", (name,), "no NULL", bad.expression, samples=tuple(beside or [name]))


def _between(rows: Rows, given: Any) -> list[Rule]:
    pairs = _by_column("between", given, '{"price": (0, 100)}, None where there is no limit')
    return [_between_rule(rows, name, limits) for name, limits in pairs]


def _between_rule(rows: Rows, name: str, limits: Any) -> Rule:
    """Both limits are inclusive. NaN always breaks the rule, NULL never does."""
    low, high = _limits("between", name, limits)
    term = rows.term(name)
    tests = [term >= _operand(rows, low)] if low is not None else []
    tests += [term <= _operand(rows, high)] if high is not None else []
    bad = ~(tests[0] & tests[1] if len(tests) == 2 else tests[0])
    return Rule("between", (name,), _range_text(low, high), bad.expression, samples=(name,))


def _limits(field: str, name: str, limits: Any) -> tuple[Any, Any]:
    where = f"{field}, column {shown(name)}" if name else field
    if not isinstance(limits, tuple | list) or len(limits) != 2 or (limits[0] is None and limits[1] is None):
        rule = "it must be two limits; one may be None"
        raise InputError(field=where, value=glimpse(limits), rule=rule, hint="")
    low, high = limits
    if any(isinstance(each, float) and each != each for each in limits):
        raise InputError(field=where, value="nan", rule="NaN cannot be a limit", hint="")
    plain = not any(each is None or isinstance(each, Term) for each in limits)
    try:
        turned = plain and bool(low > high)
    except TypeError:
        raise InputError(field=where, value=glimpse(limits), rule="both limits must be of one kind", hint="") from None
    if turned:
        raise InputError(field=where, value=glimpse(limits), rule="the first limit is above the second", hint="")
    return low, high


def _operand(rows: Rows, limit: Any) -> Any:
    """Return a constant limit as it is, and a term over the columns of the checked relation."""
    if not isinstance(limit, Term):
        return limit
    check_columns(rows.relation.names, (each.name for each in walk([limit.expression]) if isinstance(each, Column)))
    return Term(over_columns(limit.expression, own_columns(rows.relation)))


def _range_text(low: Any, high: Any) -> str:
    low_text, high_text = ("a term" if isinstance(each, Term) else mask_text(glimpse(each)) for each in (low, high))
    if low is None:
        return f"at most {high_text}"
    return f"at least {low_text}" if high is None else f"{low_text} to {high_text}"


def _matches(rows: Rows, given: Any) -> list[Rule]:
    found = []
    for name, pattern in _by_column("matches", given, '{"email": "@"}'):
        if not isinstance(pattern, str):
            raise InputError(field="matches", value=glimpse(pattern), rule="it must be a regular expression", hint="")
        bad = ~rows.term(name).matches(pattern)
        found.append(Rule("matches", (name,), mask_text(glimpse(pattern)), bad.expression, samples=(name,)))
    return found


def _references(rows: Rows, given: Any) -> list[Rule]:
    found = []
    for name, other in _by_column("references", given, '{"city": cities["name"]}'):
        if not isinstance(other, Evaluation):
            rule = "it must be the column of another Object"
            raise InputError(field="references", value=glimpse(other), rule=rule, hint='Choose one: cities["name"].')
        bad = ~rows.term(name).isin(other)
        _refuse_floats("references", name, rows.types[name])
        wanted = f"in {shown(', '.join(other.columns))} of the other"
        found.append(Rule("references", (name,), wanted, bad.expression, samples=(name,)))
    return found


# ---------------------------------------------------------------- rules about the whole table


def _rows(rows: Rows, given: Any) -> list[Rule]:
    low, high = (given, given) if type(given) is int else _limits("rows", "", given)
    for limit in (low, high):
        if limit is not None and (type(limit) is not int or limit < 0):
            raise InputError(field="rows", value=glimpse(given), rule="it must be whole numbers, 0 or more", hint="")
    wanted = f"{low}" if low == high else _range_text(low, high)
    return [Rule("rows", (), wanted, total="count()", least=low, most=high)]


def _fresh_within(rows: Rows, given: Any) -> list[Rule]:
    found = []
    for name, age in _by_column("fresh_within", given, '{"at": timedelta(hours=24)}'):
        if not isinstance(age, timedelta) or age < timedelta(0):
            raise InputError(
                field="fresh_within", value=glimpse(age), rule="it must be a timedelta, 0 or more", hint=""
            )
        if rows.term(name).expression.clock != "aware":
            hint = "Attach a zone with tz_localize('Europe/Rome')."
            rule = "only times with a zone have an age"
            raise InputError(field="fresh_within", value=shown(name), rule=rule, hint=hint)
        total = f"toFloat64(now64(6, 'UTC')) - toFloat64(maxOrNull({quoting.name(name)}))"
        wanted = f"the newest at most {age} old"
        found.append(Rule("fresh_within", (name,), wanted, total=total, most=age.total_seconds()))
    return found


_KINDS: Mapping[str, Callable[[Rows, Any], Sequence[Rule]]] = {
    "unique": _unique,
    "not_null": _not_null,
    "between": _between,
    "matches": _matches,
    "references": _references,
    "rows": _rows,
    "fresh_within": _fresh_within,
}
