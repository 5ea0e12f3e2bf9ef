"""SQL of conditions after WHERE: AND, OR and NOT without the cast to Bool that they have as columns.

ClickHouse filters the sides of a join early by the parts of a condition, which it finds only if it sees AND and OR.
It may then compute a part for more rows than before. So this is done only where no part can raise an error.
"""

from __future__ import annotations

from collections.abc import Mapping

from aaiclick.data.query.expressions import Call, Column, Expression, Member, Value, walk

_LOGIC = {
    "toBool({0} AND {1})": "({0} AND {1})",
    "toBool({0} OR {1})": "({0} OR {1})",
    "toBool(NOT {0})": "(NOT {0})",
}


def condition_sql(condition: Expression, texts: Mapping[int, str], known: Mapping[int, str]) -> str:
    """Return the SQL of a condition; `texts` are those of all its parts, `known` of those that are computed before."""
    if not all(_cannot_fail(each) for each in walk([condition], known)):
        return texts[id(condition)]
    return _plain(condition, texts, known)


def _cannot_fail(expression: Expression) -> bool:
    match expression:
        case Column() | Value():
            return True
        case Member(among=among):
            return isinstance(among, tuple)
        case Call(operation=operation, sql=text):
            return operation.compares or text in _LOGIC
    return False


def _plain(condition: Expression, texts: Mapping[int, str], known: Mapping[int, str]) -> str:
    """Write the logic around the comparisons. It is not deep: deep expressions are computed in steps."""
    if isinstance(condition, Call) and condition.sql in _LOGIC and id(condition) not in known:
        return _LOGIC[condition.sql].format(*(_plain(each, texts, known) for each in condition.args))
    return texts[id(condition)]
