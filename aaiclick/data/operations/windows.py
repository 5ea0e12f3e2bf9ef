"""Operations over windows: a value for each row, computed from the rows around it. `over` tells which rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from aaiclick.data.arithmetic import checked
from aaiclick.data.operations import products
from aaiclick.data.operations.operation import ALL_ROWS, FIRST, Operation, of_numbers, of_times_too, window
from aaiclick.data.sameness.nans import poisoned
from aaiclick.data.sql import quoting
from aaiclick.data.typing.expression_types import BOOL, COUNT, FLOAT, TEXT, Kind, Worded, found, is_float, like, maybe
from aaiclick.data.typing.grammar import Type
from aaiclick.errors import InputError
from aaiclick.urls import did_you_mean

Method = Literal["min", "max", "average", "dense", "ordinal", "percent"]

PEERS = "RANGE BETWEEN CURRENT ROW AND CURRENT ROW"
"""The frame of the rows with an equal sort key."""

ALL_PEERS = "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
"""The frame of all rows; with ROWS instead of RANGE, ClickHouse would give equal rows different ranks."""

_LAG, _LEAD = (f"{name}InFrame(toNullable({{0}}){{args}})" for name in ("lag", "lead"))
_FIRST, _LAST = (f"{name}_value_respect_nulls(toNullable({{0}}))" for name in ("first", "last"))

_FROM_HERE = "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"

_IN_ORDER = {
    "lag": window(_LAG, 1, 3, alike=FIRST, typed=found(_LAG)),
    "lead": window(_LEAD, 1, 3, alike=FIRST, frame=ALL_ROWS, typed=found(_LEAD)),
    "first_value": window(_FIRST, alike=FIRST, frame=ALL_ROWS, typed=found(_FIRST)),
    "last_value": window(_LAST, alike=FIRST, frame=ALL_ROWS, typed=found(_LAST)),
    "forward_fill": window("anyLast({0})", alike=FIRST, typed=found("anyLast({0})")),
    "backward_fill": window("any({0})", alike=FIRST, frame=_FROM_HERE, typed=found("any({0})")),
    "cumsum": window("sum({0})", typed=checked.total_so_far),
    "cummean": window("avg({0})", typed=checked.mean),
    "cummin": window("min({0})", alike=FIRST, typed=poisoned("min({0})")),
    "cummax": window("max({0})", alike=FIRST, typed=poisoned("max({0})")),
    "cumcount": window("count({0})", typed=lambda _: Worded("count({0})", COUNT)),
    "cumprod": window(products.UNKNOWN, typed=products.product_so_far),
}

WINDOWS = {
    "row_number": window("row_number()", 0, 0, frame=""),
    "rank": window("rank()", 0, 0, frame="", ordered=True),
    **{name: operation._replace(ordered=True) for name, operation in _IN_ORDER.items()},
}
"""Window functions without options. `lag` and `lead` give None where there is no such row; `first_value` and
`last_value` are those of the group, even if that is None.
"""


# ---------------------------------------------------------------- ranks

_RANKS: dict[Method, tuple[str, str, Type]] = {
    "min": ("rank(){over}", "", COUNT),
    "max": ("toUInt64(rank(){over} + count(){over} - 1)", PEERS, COUNT),
    "average": ("(rank(){over} + (count(){over} - 1) / 2)", PEERS, FLOAT),
    "dense": ("dense_rank(){over}", "", COUNT),
    "ordinal": ("row_number(){over}", "", COUNT),
    "percent": ("((rank(){over} - 1) / greatest(count({0}){over} - 1, 1))", ALL_PEERS, FLOAT),
}
"""For each method: the SQL, its frame, and the type of the result."""

METHODS = tuple(_RANKS)


def ranked(method: str) -> Operation:
    """Return the rank of each row in the order given to `over`."""
    text, frame, kind = _rank(method)
    words = text.replace("{0}", "")
    return window(words, 0, 0, frame=frame, ordered=method != "ordinal", typed=lambda _: Worded(words, kind))


def rank_of(method: str, *, descending: bool) -> Operation:
    """Return the rank of each value among the others, sorted by the value itself; None for None."""
    text, frame, kind = _rank(method)
    text = f"if(isNull({{0}}), NULL, {text})"
    operation = window(text, frame=frame, typed=lambda kinds: Worded(text, like(kind, *kinds)))
    return operation._replace(sorts="down" if descending else "up")


def _rank(method: str) -> tuple[str, str, Type]:
    for name, said in _RANKS.items():
        if name == method:
            return said
    hint = 'Use "ordinal".' if method == "first" else did_you_mean(str(method), METHODS)
    raise InputError(field="method", value=repr(method), rule=f"it must be one of {', '.join(METHODS)}", hint=hint)


def ntile(count: int, *, descending: bool) -> Operation:
    """Return the number, from 1, of each row's part when the sorted rows are cut into `count` nearly equal parts."""
    text = f"ntile({checked_count(count, 'ntile')}){{over}}"
    operation = window(text, frame="", typed=lambda _: Worded(text, COUNT))
    return operation._replace(sorts="down" if descending else "up")


# ---------------------------------------------------------------- neighbouring rows


def shifted(count: int) -> Operation:
    """Return the value `count` rows before, or after if `count` is negative."""
    text = _beside(count)
    return window(text, alike=FIRST, frame=ALL_ROWS, ordered=True, typed=found(text))


def _beside(count: int) -> str:
    if type(count) is not int or abs(count) >= 2**31:
        raise InputError(field="rows", value=repr(count), rule="it must be a whole number of rows", hint="")
    return f"{'lag' if count >= 0 else 'lead'}InFrame(toNullable({{0}}), {abs(count)}){{over}}"


def difference(count: int) -> Operation:
    """Return each value minus the one `count` rows before: in days for dates, in seconds for times."""
    other = _beside(count)

    def words(kinds: Sequence[Kind]) -> Worded | None:
        kind = kinds[0]
        if kind is not None and kind.bare.name in ("Date", "Date32"):
            return Worded(f"dateDiff('day', {other}, {{0}})", maybe(Type("Int64")))
        if kind is not None and (kind.bare.name.startswith("DateTime") or kind.bare == BOOL):
            return None
        worded = checked.added("-")([kind, maybe(kind)])
        return None if worded is None else Worded(worded.sql.replace("{1}", other), maybe(worded.kind))

    return of_times_too(window(f"({{0}} - {other})", frame=ALL_ROWS, ordered=True, typed=words))


def change(count: int) -> Operation:
    """Return the change relative to the value `count` rows before, as a float."""
    text = f"(toFloat64({{0}}) / {_beside(count).replace('{0}', 'toFloat64({0})')} - 1)"
    return of_numbers(
        "pct_change", window(text, frame=ALL_ROWS, ordered=True, typed=lambda _: Worded(text, maybe(FLOAT)))
    )


def nth(count: int) -> Operation:
    """Return the value of row `count` of the group, counted from 1; None if it has fewer rows."""
    text = f"nth_value(toNullable({{0}}), {checked_count(count, 'nth_value')}){{over}}"
    return window(text, alike=FIRST, frame=ALL_ROWS, ordered=True, typed=found(text))


def checked_count(count: object, field: str) -> int:
    """Return `count`; raise InputError unless it is an integer from 1 to 2**31 - 1."""
    if type(count) is not int or not 1 <= count < 2**31:
        raise InputError(field=field, value=repr(count), rule="it must be a whole number, 1 or more", hint="")
    return count


# ---------------------------------------------------------------- quantile ranges


def parted(places: Sequence[float], labels: Sequence[str] | None) -> Operation:
    """Return the number, from 0, of the range between the quantiles `places` that each value lies in; or its label."""
    edges = f"quantilesExactInclusive({', '.join(map(repr, places))})({{number}}){{over}}"
    values = f"arrayWithConstant({len(places)}, assumeNotNull({{number}}))"
    number = f"arrayCount((m, n) -> m < n, {edges}, {values})" if places else "0"
    kind = COUNT if labels is None else TEXT
    if labels is not None:
        number = f"[{', '.join(map(braced, labels))}][{number} + 1]"

    def words(kinds: Sequence[Kind]) -> Worded:
        wide = kinds[0] is not None and not is_float(kinds[0])
        text = number.replace("{number}", "toFloat64({0})" if wide else "{0}")
        is_none = "isNull({0})" if wide else "(isNull({0}) OR isNaN({0}))"
        return Worded(f"if({is_none}, NULL, {text})", maybe(kind) if is_float(kinds[0]) else like(kind, *kinds))

    text = words([FLOAT]).sql
    return of_numbers("qcut", window(text, frame=ALL_ROWS, typed=words))


def braced(label: str) -> str:
    """Return a text as an SQL literal for a template, with braces doubled."""
    return quoting.text(label).replace("{", "{{").replace("}", "}}")
