"""`expect`: checks the data of a frame, reports what was found, and gives the rows that break an expectation."""

from __future__ import annotations

import logging
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

from aaiclick.data.compiling.select_sql import to_sql
from aaiclick.data.query.column_terms import Term
from aaiclick.data.query.expressions import Expression, Raw, Value
from aaiclick.data.query.relations import Filter, Project, Relation, column_of, free_prefix, tables_of
from aaiclick.data.results.evaluation import Evaluation
from aaiclick.data.sql import quoting
from aaiclick.data.typing.schema import Shape
from aaiclick.data.verbs.expectation_rules import Rows, Rule, rules_of
from aaiclick.errors import ExpectationFailed, InputError
from aaiclick.telemetry.masks import mask_text
from aaiclick.urls import shown

if TYPE_CHECKING:
    from aaiclick.data.context import Context
    from aaiclick.data.objects import Object

SAMPLES_MAX = 5
SAMPLE_LENGTH_MAX = 2_000
"""How many characters of a value are read and masked; fewer are shown."""

OUTCOMES = {"passed": "expect_passed", "warn": "expect_warned", "fail": "expect_failed"}
"""The name of each outcome in the log of operations."""

log = logging.getLogger("aaiclick.data")


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one expectation."""

    name: str
    columns: tuple[str, ...]
    wanted: str
    passed: bool
    failed_rows: int
    """The number of rows that break it; always 0 for checks of the whole table, `rows` and `fresh_within`."""
    samples: tuple[Mapping[str, str | None], ...]
    """A few of those rows: the values of the shown columns as texts, shortened, with secrets masked."""
    found: str

    @property
    def column(self) -> str:
        """The names of the checked columns, joined with commas."""
        return ", ".join(self.columns)

    @property
    def line(self) -> str:
        """The result as one line for logs and errors."""
        what = " ".join(filter(None, (self.name, shown(self.column))))
        such = "; ".join(", ".join(f"{shown(name)}={value}" for name, value in row.items()) for row in self.samples)
        return f"{what} ({self.wanted}): {self.found}" + (f", such as {such}" if such else "")


@dataclass(frozen=True, slots=True)
class Expected:
    """The result of one call of `expect`: the number of rows, and its checks."""

    rows: int
    checks: tuple[Check, ...]
    _context: Context = field(repr=False)
    _relation: Relation = field(repr=False)
    _shape: Shape = field(repr=False)
    _bad: tuple[Expression | None, ...] = field(repr=False)

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that did not pass."""
        return tuple(check for check in self.checks if not check.passed)

    async def bad_rows(self, *names: str) -> Object:
        """Make a new Object of the rows that break one of the named expectations; without names, any of them.

        The query runs again, on the data as it is at the time of this call.
        """
        return await self._context.materialize(self._rows(names, is_bad=True), self._kind, None, "global")

    async def good_rows(self) -> Object:
        """Make a new Object of the rows that break no expectation, of the data at the time of this call."""
        return await self._context.materialize(self._rows((), is_bad=False), self._kind, None, "global")

    @property
    def _kind(self) -> Shape:
        return "list" if self._shape in ("scalar", "list") else "table"

    def _rows(self, names: Sequence[str], *, is_bad: bool) -> Relation:
        known = {check.name for check in self.checks}
        if unknown := [name for name in names if name not in known]:
            rule = f"what was expected is {', '.join(sorted(known))}"
            raise InputError(field="bad_rows", value=shown(repr(unknown[0])), rule=rule, hint="")
        pairs = zip(self.checks, self._bad, strict=True)
        bad = [Term(each).fill_null(False) for check, each in pairs if each and (not names or check.name in names)]
        found = reduce(operator.or_, bad) if bad else Term(Value(False))
        return Filter(self._relation, ((found if is_bad else ~found).expression,))


class Expecting(Evaluation):
    """The `expect` method of a frame."""

    __slots__ = ()

    async def expect(
        self,
        *,
        unique: str | tuple[str, ...] | list[str | tuple[str, ...]] | None = None,
        not_null: str | list[str] | None = None,
        between: Mapping[str, tuple[Any, Any]] | None = None,
        matches: Mapping[str, str] | None = None,
        references: Mapping[str, Evaluation] | None = None,
        rows: int | tuple[int | None, int | None] | None = None,
        fresh_within: Mapping[str, timedelta] | None = None,
        on_fail: Literal["fail", "warn"] = "fail",
    ) -> Expected:
        """Check the data in one query. If a check fails, raise ExpectationFailed, or log a warning (on_fail="warn").

        NULL breaks only `not_null`. NaN is not NULL, and breaks every `between`. An empty table breaks only `rows` and
        `fresh_within`.
        """
        given: dict[str, Any] = {"unique": unique, "not_null": not_null, "between": between, "matches": matches}
        given |= {"references": references, "rows": rows, "fresh_within": fresh_within}
        if on_fail not in ("fail", "warn"):
            raise InputError(field="on_fail", value=shown(repr(on_fail)), rule="it must be fail or warn", hint="")
        return await _expect(self, given, on_fail)


async def _expect(frame: Evaluation, given: Mapping[str, Any], on_fail: str) -> Expected:
    client, relation = frame._context.client, frame._relation
    described = await client.rows(f"DESCRIBE TABLE ({to_sql(relation)})")
    rules = rules_of(Rows(relation, dict(zip(*described.columns[:2], strict=True))), given)
    query = _query(relation, rules)
    count, *answers = (column[0] for column in (await client.rows(query)).columns)
    pairs = zip(answers[::2], answers[1::2], strict=True)
    checks = tuple(_check(rule, count, *pair) for rule, pair in zip(rules, pairs, strict=True))
    found = Expected(count, checks, frame._context, relation, frame._shape, tuple(rule.bad for rule in rules))
    await _tell(found, on_fail)
    return found


def _query(relation: Relation, rules: Sequence[Rule]) -> str:
    """Return a query of one row: the number of rows, then of each rule how many rows break it and a few of them."""
    prefix = free_prefix(relation.names)
    columns: dict[str, Expression] = {}
    totals = ["count()"]
    for number, rule in enumerate(rules):
        if rule.bad is None:
            columns |= {name: column_of(relation, name) for name in rule.columns}
            totals += [rule.total, "[]"]
            continue
        bad, texts = f"{prefix}b{number}", [f"{prefix}t{number}_{at}" for at in range(len(rule.samples))]
        columns[bad] = rule.bad
        columns |= dict(zip(texts, map(_text_of, rule.samples), strict=True))
        listed = ", ".join(map(quoting.name, texts))
        totals += [
            f"countIf({quoting.name(bad)})",
            f"groupUniqArrayIf({SAMPLES_MAX})(tuple({listed}), {quoting.name(bad)})",
        ]
    inner = to_sql(Project(relation, columns)) if columns else to_sql(relation)
    named = ", ".join(f"{total} AS `{number}`" for number, total in enumerate(totals))
    return f"SELECT {named} FROM ({inner})"  # noqa: S608 (compiled)


def _text_of(name: str) -> Raw:
    return Raw(f"substringUTF8(toValidUTF8(toString({quoting.name(name)})), 1, {SAMPLE_LENGTH_MAX + 1})")


def _check(rule: Rule, count: int, number: float | None, samples: Sequence[tuple[str | None, ...]]) -> Check:
    if rule.bad is None:
        return Check(rule.name, rule.columns, rule.wanted, _is_within(rule, number), 0, (), _total_text(rule, number))
    shown_rows = sorted(
        ({name: _masked(text) for name, text in zip(rule.samples, row, strict=True)} for row in samples),
        key=lambda row: [(text is not None, text or "") for text in row.values()],
    )
    bad = int(number or 0)
    found = f"{bad} of {count} rows"
    return Check(rule.name, rule.columns, rule.wanted, not bad, bad, tuple(shown_rows), found)


def _is_within(rule: Rule, number: float | None) -> bool:
    if number is None:
        return False
    return (rule.least is None or number >= rule.least) and (rule.most is None or number <= rule.most)


def _total_text(rule: Rule, number: float | None) -> str:
    if rule.name == "rows":
        return f"{number} found"
    return "there is none" if number is None else f"it is {timedelta(seconds=number)} old"


def _masked(text: str | None) -> str | None:
    """Mask secrets, then shorten: a secret that was cut in half would not be recognized."""
    if text is None:
        return None
    return shown(mask_text(text if len(text) <= SAMPLE_LENGTH_MAX else text[:SAMPLE_LENGTH_MAX] + "…"))


async def _tell(found: Expected, on_fail: str) -> None:
    """Note the outcome in the log of operations and the context's `expected`; warn or raise if a check failed."""
    context, lines = found._context, [check.line for check in found.failed]
    outcome = OUTCOMES[on_fail if lines else "passed"]
    for table in {each.name for each in tables_of(found._relation)}:
        await context.note(outcome, table, (), "; ".join(lines))
    context.expected += [(outcome, line) for line in lines]
    if not lines:
        return
    if on_fail == "warn":
        for line in lines:
            log.warning("expectation not met: %s", line)
        return
    raise ExpectationFailed(broken="; ".join(lines), found=found)
