"""Bounds of a column from which on, or between which, rows are new: as SQL conditions.

Times are written with the zone UTC, whatever they mean: rows are deleted in the background, where the zone of the
session is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context as Digits
from decimal import Decimal
from typing import Any

from aaiclick.data.clients.contract import DataClient
from aaiclick.data.clocks import check_alike, clock_of
from aaiclick.data.compiling.select_sql import to_sql
from aaiclick.data.display import glimpse
from aaiclick.data.query.relations import Project, column_of
from aaiclick.data.sql import quoting
from aaiclick.data.tables.stored_tables import table_of
from aaiclick.data.typing.grammar import Type, parse
from aaiclick.data.typing.schema import Schema
from aaiclick.data.typing.types import clock_of_type
from aaiclick.errors import InputError
from aaiclick.urls import did_you_mean, shown

DAYS = ("Date", "Date32")
TIMES = ("DateTime", "DateTime64")
LOOKBACKS: tuple[tuple[tuple[str, ...], type | tuple[type, ...], str], ...] = (
    ((*DAYS, *TIMES), timedelta, "a timedelta"),
    (("Int", "UInt"), int, "a whole number"),
    (("Decimal",), (int, Decimal), "a whole number or a Decimal"),
    (("Float",), (int, float), "a number"),
)
FIRST_DAY, FIRST_MOMENT = date(1900, 1, 1), datetime(1900, 1, 1)  # noqa: DTZ001 (ClickHouse's first, in any zone)
FIRST_NUMBER = -(2**255)
_EXACTLY = Digits(prec=200)


class Axis:
    """The column whose values tell which rows are new: times, numbers or texts."""

    def __init__(self, name: str, schema: Schema) -> None:
        if name not in schema:
            hint = did_you_mean(name, schema.names) or f"Its columns: {shown(', '.join(schema.names))}."
            raise InputError(field="incremental_by", value=shown(repr(name)), rule="there is no such column", hint=hint)
        self.name = name
        self.type = schema[name].type
        self.kind: Type = parse(self.type).bare
        self.quoted = quoting.name(name)
        if not self.kind.name.startswith(("Int", "UInt", "Float", "Decimal", "Date", "String")):
            rule = f"its type is {self.kind.name}: it must be a time, number or text"
            raise InputError(field="incremental_by", value=shown(repr(name)), rule=rule, hint="Choose another column.")

    @property
    def absent(self) -> str:
        """Return the condition that a row has NULL or NaN in the column, and so no place in its order."""
        return f"ifNull({self.quoted} != {self.quoted}, 1)"

    def since(self, bound: object) -> str:
        """Return the condition that a row is not before a bound, or has NULL or NaN."""
        return f"ifNull(NOT ({self.quoted} < {self.written(bound)}), 1)"

    def within(self, start: object, end: object) -> str:
        """Return the condition that a row is in the interval, without its end, or has NULL or NaN."""
        inside = f"{self.quoted} >= {self.written(start)} AND {self.quoted} < {self.written(end)}"
        return f"ifNull(({inside}) OR {self.quoted} != {self.quoted}, 1)"

    def written(self, bound: object) -> str:
        """Return a bound as SQL, to compare the column with."""
        if isinstance(bound, datetime):
            moment = bound if bound.tzinfo is None else bound.astimezone(UTC)
            return f"toDateTime64('{moment:%Y-%m-%d %H:%M:%S.%f}', 6, 'UTC')"
        return quoting.literal(bound)

    def checked(self, bound: object) -> object:
        """Return a given bound as a value of the column's type.

        Raise InputError if it is of another type, or a day that begins at another moment in each zone.
        """
        told, name = f"partition, column {shown(self.name)}", self.kind.name
        if name in DAYS and isinstance(bound, datetime):
            if bound.time() != time.min:
                raise _refused("partition", bound, f"{self.name} holds days: this is not the beginning of one", "")
            return bound.date()
        if name in TIMES and isinstance(bound, date):
            clock = clock_of_type(self.type)
            if not isinstance(bound, datetime):
                if clock == "aware":
                    hint = "Give a datetime with a zone."
                    raise _refused("partition", bound, "a day begins at a different moment in each zone", hint)
                bound = datetime.combine(bound, time.min)
            check_alike(told, clock, clock_of(bound))
            return bound
        wanted: tuple[type, ...] = (int, float, Decimal)
        if name in DAYS:
            wanted = (date,)
        elif name in TIMES:
            wanted = (datetime,)
        elif name == "String":
            wanted = (str,)
        if not isinstance(bound, wanted) or isinstance(bound, bool) or bound != bound:
            raise _refused("partition", bound, f"it is not a value of {self.name}, whose type is {self.type}", "")
        return bound

    def interval(self, given: Any) -> tuple[object, object]:
        """Return the start and the end of a partition; raise InputError unless the start is before the end."""
        if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
            raise _refused("partition", given, "it must be (start, end), where the end is not included", "")
        start, end = map(self.checked, given)
        if not start < end:  # type: ignore[operator]
            raise _refused("partition", given, "it ends before it begins, or is empty", "")
        return start, end

    def check_lookback(self, lookback: Any) -> None:
        """Raise InputError if the lookback cannot be subtracted from a value of the column."""
        for names, wanted, told in LOOKBACKS:
            if self.kind.name.startswith(names):
                is_one = isinstance(lookback, wanted) and not isinstance(lookback, bool)
                if not is_one or not lookback >= type(lookback)(0):
                    raise _refused("lookback", lookback, f"for {self.type} it must be {told}, and not negative", "")
                if self.kind.name in DAYS and lookback % timedelta(days=1):
                    raise _refused("lookback", lookback, f"{self.name} holds days: give whole days", "")
                return
        raise _refused("lookback", lookback, f"nothing can be subtracted from {self.type}", "Leave it out.")

    async def last(self, client: DataClient, table: str, schema: Schema) -> object:
        """Return the greatest value in a table; None if there is none."""
        relation = table_of(table, schema)
        inner = to_sql(Project(relation, {self.name: column_of(relation, self.name)}))
        value = f"max({self.quoted})"
        if self.kind.name in TIMES:  # nanoseconds are cut: a bound that is too early does no harm
            value = f"toString(toDateTime64({value}, 6, 'UTC') - toIntervalMicrosecond({int(self._is_fine)}))"
        found = await client.rows(f"SELECT count({self.quoted}), {value} FROM ({inner})")  # noqa: S608 (compiled)
        count, last = (column[0] for column in found.columns)
        if not count:
            return None
        return datetime.fromisoformat(last) if self.kind.name in TIMES else last

    @property
    def _is_fine(self) -> bool:
        return self.kind.name == "DateTime64" and int(self.kind.numbers[0]) > 6


def before(last: Any, lookback: Any) -> Any:
    """Return the last value minus the lookback, but no day, time or integer before the first that ClickHouse holds."""
    if lookback is None:
        return last
    try:
        match last:
            case datetime():
                return max(last - lookback, FIRST_MOMENT)
            case date():
                return max(last - lookback, FIRST_DAY)
            case Decimal():
                return _EXACTLY.subtract(last, Decimal(lookback))
    except OverflowError:
        return FIRST_MOMENT if isinstance(last, datetime) else FIRST_DAY
    return max(last - lookback, FIRST_NUMBER) if isinstance(last, int) else last - lookback


def _refused(field: str, value: object, rule: str, hint: str) -> InputError:
    return InputError(field=field, value=glimpse(value), rule=rule, hint=hint)
