"""How joins, and lists that become rows, are said in SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aaiclick.data import sql
from aaiclick.data.kinds import one_zero
from aaiclick.data.relations import Explode, Join, Relation, column_of

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
    listed += [_as(f"{right}.{sql.name(name)}", called) for name, called in relation.renamed.items()]
    text = f"SELECT {', '.join(listed)} FROM {source(relation.left)} AS {left} {_KINDS[relation.kind]} "
    text += f"{source(relation.right)} AS {right}"
    if relation.on:
        signs = ["="] * (len(relation.on) - 1) + [_NEAREST.get(relation.kind, "=")]
        mine = [_key(relation.left, a, left) for a, _ in relation.on]
        theirs = [_key(relation.right, b, right) for _, b in relation.on]
        text += " ON " + " AND ".join(map(" ".join, zip(mine, signs, theirs, strict=True)))
    return text


def _key(side: Relation, name: str, alias: str) -> str:
    """A column that rows are matched by: 0.0 and -0.0 are one."""
    return one_zero(column_of(side, name).kind).format(f"{alias}.{sql.name(name)}")


def _as(text: str, name: str) -> str:
    return f"{text} AS {sql.name(name)}"


def _alias(wanted: str, names: Sequence[str]) -> str:
    """A name for a side of a join that no column is called, not even in part: a column may be called `l.a`."""
    while any(name.partition(".")[0] == wanted for name in names):
        wanted += "_"
    return wanted


def _of_left(relation: Join, name: str, keys: Mapping[str, str], left: str, right: str) -> str:
    """A column of the left side; a key also where only the right side has a row."""
    if name in keys and relation.kind == "right":
        return f"{right}.{sql.name(keys[name])}"
    if name in keys and relation.kind == "full":
        return f"coalesce({left}.{sql.name(name)}, {right}.{sql.name(keys[name])})"
    return f"{left}.{sql.name(name)}"


def exploded_sql(relation: Explode) -> str:
    """What stands after ARRAY JOIN. Lists of different lengths in one row are refused by ClickHouse."""
    lists = [sql.name(column) for column in relation.columns]
    if not relation.keep_empty:
        return ", ".join(lists)
    empty = " AND ".join(f"empty({each})" for each in lists)
    return ", ".join(f"if({empty}, [NULL], {each}) AS {each}" for each in lists)
