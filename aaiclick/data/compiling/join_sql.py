"""SQL of joins, and of ARRAY JOIN (lists that become rows)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aaiclick.data.parsing.exact_casts import exact_cast
from aaiclick.data.query.expressions import Column
from aaiclick.data.query.relations import Explode, Join, Relation, column_of
from aaiclick.data.sameness.coercion import Match, matched, one_column
from aaiclick.data.sql import quoting
from aaiclick.data.typing.expression_types import Kind, as_key
from aaiclick.data.typing.grammar import nullable

_KINDS = {
    "inner": "INNER JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "cross": "CROSS JOIN",
    "semi": "LEFT SEMI JOIN",
    "anti": "LEFT ANTI JOIN",
    "backward": "ASOF LEFT JOIN",
    "forward": "ASOF LEFT JOIN",
}
_NEAREST = {"backward": ">=", "forward": "<="}


def join_sql(relation: Join, source: Callable[[Relation], str]) -> str:
    """Return the query of a join; `source` returns the SQL of a relation after FROM."""
    keys, names = dict(relation.on), (*relation.left.names, *relation.right.names)
    left, right = _alias("l", names), _alias("r", names)
    listed = [_as(_of_left(relation, name, keys, left, right), name) for name in relation.left.names]
    listed += [_as(f"{right}.{quoting.name(name)}", called) for name, called in relation.renamed.items()]
    text = f"SELECT {', '.join(listed)} FROM {source(relation.left)} AS {left} {_KINDS[relation.kind]} "
    text += f"{source(relation.right)} AS {right}"
    if relation.on:
        signs = ["="] * (len(relation.on) - 1) + [_NEAREST.get(relation.kind, "=")]
        words = [_match(relation, a, b) for a, b in relation.on]
        mine = [_key(relation.left, a, left, each.left) for (a, _), each in zip(relation.on, words, strict=True)]
        theirs = [_key(relation.right, b, right, each.right) for (_, b), each in zip(relation.on, words, strict=True)]
        text += " ON " + " AND ".join(map(" ".join, zip(mine, signs, theirs, strict=True)))
    return text


def _match(relation: Join, mine: str, theirs: str) -> Match:
    """Return how two keys are compared; the inexact key of an ASOF join is compared without casts."""
    if relation.kind in _NEAREST and (mine, theirs) == relation.on[-1]:
        return Match()
    return matched(column_of(relation.left, mine).kind, column_of(relation.right, theirs).kind, "on", mine)


def _key(side: Relation, name: str, alias: str, words: str) -> str:
    return words.format(as_key(column_of(side, name).kind).format(f"{alias}.{quoting.name(name)}"))


def _as(text: str, name: str) -> str:
    return f"{text} AS {quoting.name(name)}"


def _alias(wanted: str, names: Sequence[str]) -> str:
    """Return an alias for one side of a join that is no column's name, nor its part before a point (as in `l.a`)."""
    while any(name.partition(".")[0] == wanted for name in names):
        wanted += "_"
    return wanted


def _of_left(relation: Join, name: str, keys: Mapping[str, str], left: str, right: str) -> str:
    """Return SQL of a left column; a key gets the right side's value where only that side has a row."""
    if name in keys and relation.kind == "right":
        return f"{right}.{quoting.name(keys[name])}"
    if name in keys and relation.kind == "full":
        mine, theirs = column_of(relation.left, name), column_of(relation.right, keys[name])
        wanted = one_column([mine.kind, theirs.kind], "on", name)
        found = [(f"{left}.{quoting.name(name)}", mine), (f"{right}.{quoting.name(keys[name])}", theirs)]
        return f"coalesce({', '.join(_as_one(text, each, wanted) for text, each in found)})"
    return f"{left}.{quoting.name(name)}"


def _as_one(text: str, column: Column, wanted: Kind) -> str:
    return text if wanted is None else exact_cast(text, str(nullable(wanted)), column.clock)


def exploded_sql(relation: Explode) -> str:
    """Return the SQL after ARRAY JOIN. ClickHouse refuses lists of different lengths in one row."""
    lists = [quoting.name(column) for column in relation.columns]
    if not relation.keep_empty:
        return ", ".join(lists)
    empty = " AND ".join(f"empty({each})" for each in lists)
    return ", ".join(f"if({empty}, [NULL], {each}) AS {each}" for each in lists)
