"""Asking an engine for many expressions in one query, and comparing its answers with Python's."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from aaiclick.data import Context
from aaiclick.data.clients.contract import Rows
from aaiclick.data.compiling.select_sql import to_sql
from aaiclick.data.frames import Frame
from aaiclick.data.query.relations import column_of
from aaiclick.data.typing.expression_types import is_float
from aaiclick.errors import AaiclickError
from tests.support.expressions.maker import KINDS, REFUSED, Maker, Node, random_rows
from tests.support.expressions.others import COMPARED as OTHERS

ROWS = 10
REFUSED_MAX, OPEN_MAX = 6, 3
"""How many are asked alone, for each table."""

assert OTHERS, "what makes expressions is known"

Ask = Callable[[str], Awaitable[Rows]]


class Batch(NamedTuple):
    """A table, and expressions over it."""

    frame: Frame
    maker: Maker
    nodes: list[Node]

    @property
    def asked_alone(self) -> list[Node]:
        return [*self.maker.refused[:REFUSED_MAX], *self.maker.open[:OPEN_MAX]]


async def random_batch(context: Context, seed: str, count: int) -> Batch:
    """A table of random rows, and so many random expressions."""
    chance = Random(seed)  # no secret
    rows = random_rows(chance, ROWS)
    given = {"k": list(range(ROWS)), **rows}
    frame = await context.create_object_from_value(given, fields={"k": "Int64", **KINDS})
    maker = Maker(chance, {name: column_of(frame._relation, name) for name in rows}, rows)
    return Batch(frame, maker, [maker.make() for _ in range(count)])


@dataclass
class Compared:
    """What was found."""

    asked: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)
    answers: list[tuple[str, Any]] = field(default_factory=list)
    """Queries and what came, or that it was refused."""

    def note(self, what: str, node: Node, batch: Batch, row: int | None, found: object) -> None:
        names = dict.fromkeys(re.findall(r"\bc\d+", node.told))
        given = {name: (KINDS[name], batch.maker.rows[name][row] if row is not None else "") for name in names}
        wanted = "" if row is None else f"; expected {node.values[row]!r}"
        self.wrong.append(f"{what}: {node.told}; {given}; found {found!r}{wanted}")


async def compare(ask: Ask, batch: Batch, found: Compared) -> None:
    """Ask for all expressions of a batch, and note which answers are not Python's."""
    await _together(ask, batch, batch.nodes, found)
    for node in batch.asked_alone:
        await _alone(ask, batch, node, found)


async def _together(ask: Ask, batch: Batch, nodes: Sequence[Node], found: Compared) -> None:
    try:
        answer = await _answer(ask, batch, nodes, found)
    except AaiclickError as error:
        if len(nodes) == 1:
            found.note("refused", nodes[0], batch, None, str(error)[:300])
        else:
            half = len(nodes) // 2
            await _together(ask, batch, nodes[:half], found)
            await _together(ask, batch, nodes[half:], found)
        return
    for node, kind, column in zip(nodes, answer.types, answer.columns, strict=True):
        found.asked += 1
        _check_type(node, kind, batch, found)
        _check_values(node, column, batch, found)


async def _alone(ask: Ask, batch: Batch, node: Node, found: Compared) -> None:
    found.asked += 1
    try:
        answer = await _answer(ask, batch, [node], found)
    except AaiclickError:
        found.refused += 1
        return
    if wrong := [row for row, value in enumerate(node.values) if value is REFUSED]:
        found.note("not refused", node, batch, wrong[0], answer.columns[0][wrong[0]])
    else:
        _check_values(node, answer.columns[0], batch, found)


async def _answer(ask: Ask, batch: Batch, nodes: Sequence[Node], found: Compared) -> Rows:
    """The values in the order of the table's rows."""
    chosen = batch.frame.select("k", **{f"e{number}": node.term for number, node in enumerate(nodes)})
    query = to_sql(chosen._relation)
    try:
        answer = await ask(query)
    except AaiclickError:
        found.answers.append((query, "refused"))
        raise
    order = sorted(range(ROWS), key=lambda row: answer.columns[0][row])
    columns = [[column[row] for row in order] for column in answer.columns[1:]]
    found.answers.append((query, (answer.types, repr(columns))))
    return Rows(answer.names[1:], answer.types[1:], columns)


def _check_type(node: Node, kind: str, batch: Batch, found: Compared) -> None:
    if node.kind is not None and _bare(kind) != _bare(str(node.kind)):
        found.note("another type", node, batch, None, f"{kind} where {node.kind} was known")


def _bare(kind: str) -> str:
    return re.sub(r"(Nullable|LowCardinality)\(|\)", "", kind)


def _check_values(node: Node, column: Sequence[Any], batch: Batch, found: Compared) -> None:
    for row, (value, wanted) in enumerate(zip(column, node.values, strict=True)):
        if not _same(value, wanted, is_float(node.kind)):
            found.note("wrong", node, batch, row, value)
            return


def _same(value: Any, wanted: Any, as_float: bool) -> bool:
    if value is None or wanted is None:
        return value is wanted
    if isinstance(value, bool) != isinstance(wanted, bool):
        return False
    if as_float or isinstance(value, float):
        return repr(value) == repr(wanted)
    return bool(value == wanted)
