"""How joins, and lists that become rows, are said in SQL."""

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
    """The query of a join; `source` writes what stands after FROM."""
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
    """How two keys are compared; the nearest are as they are."""
    if relation.kind in _NEAREST and (mine, theirs) == relation.on[-1]:
        return Match()
    return matched(column_of(relation.left, mine).kind, column_of(relation.right, theirs).kind, "on", mine)


def _key(side: Relation, name: str, alias: str, words: str) -> str:
    """A column that rows are matched by."""
    return words.format(as_key(column_of(side, name).kind).format(f"{alias}.{quoting.name(name)}"))


def _as(text: str, name: str) -> str:
    return f"{text} AS {quoting.name(name)}"


def _alias(wanted: str, names: Sequence[str]) -> str:
    """A name for a side of a join that no column is called, not even in part: a column may be called `l.a`."""
    while any(name.partition(".")[0] == wanted for name in names):
        wanted += "_"
    return wanted


def _of_left(relation: Join, name: str, keys: Mapping[str, str], left: str, right: str) -> str:
    """A column of the left side; a key also where only the right side has a row."""
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
    """What stands after ARRAY JOIN. Lists of different lengths in one row are refused by ClickHouse."""
    lists = [quoting.name(column) for column in relation.columns]
    if not relation.keep_empty:
        return ", ".join(lists)
    empty = " AND ".join(f"empty({each})" for each in lists)
    return ", ".join(f"if({empty}, [NULL], {each}) AS {each}" for each in lists)
