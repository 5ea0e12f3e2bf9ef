"""Finds the columns that raw SQL refers to, where this is certain without asking ClickHouse."""

from __future__ import annotations

import re
from collections.abc import Collection

_TOKEN = re.compile(
    r"""\s+
    | (?P<text> '(?:[^'\\]|\\.|'')*')
    | (?P<quoted> `(?:[^`\\])*` | "(?:[^"\\])*")
    | (?P<number> \d+(?:\.\d*)?(?:[eE][+-]?\d+)?)
    | (?P<word> [A-Za-z_]\w*)
    | (?P<sign> <=>|<=|>=|<>|!=|==|\|\||[-+*/%=<>(),\[\].])""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)

_WORDS = frozenset(
    """and or not is null true false between in like ilike case when then else end div mod asc desc nulls first last
    interval second minute hour day week month quarter year""".split()  # noqa: SIM905 (shorter)
)
"""SQL keywords that leave the meaning of the names around them unchanged."""

_AFTER_A_VALUE = re.compile(r"[\w'`\")\]]$", re.ASCII)


def named_columns(sql: str, columns: Collection[str]) -> set[str] | None:
    """Return the given columns that a piece of SQL refers to; None if only ClickHouse can tell.

    The answer is known if every name is a column or a function. With a subquery, an alias, a lambda, an asterisk or any
    other name it is not.
    """
    tokens = _tokens(sql)
    if tokens is None:
        return None
    found: set[str] = set()
    for at, (kind, token) in enumerate(tokens):
        before = tokens[at - 1][1] if at else ""
        after = tokens[at + 1][1] if at + 1 < len(tokens) else ""
        if token == "*" and not (_AFTER_A_VALUE.search(before) and before.lower() not in _WORDS):  # noqa: S105 (no password)
            return None
        if token == "." or (before.lower() == "in" and after != "(" and token not in "(["):  # noqa: S105 (no password)
            return None  # an element of a tuple or a table, or a table after IN
        name = token[1:-1] if kind == "quoted" else token
        if kind == "quoted" or (kind == "word" and name in columns and after != "("):
            if name not in columns:
                return None
            found.add(name)
        elif kind == "word" and name.lower() not in _WORDS and (after != "(" or name.lower() in _OPENING):
            return None
    return found


_OPENING = frozenset({"select", "columns", "exists", "distinct", "with", "apply"})
"""Words before a parenthesis that are not plain functions of its contents."""


def _tokens(sql: str) -> list[tuple[str, str]] | None:
    found: list[tuple[str, str]] = []
    place = 0
    while place < len(sql):
        token = _TOKEN.match(sql, place)
        if token is None:
            return None
        if token.lastgroup is not None:
            found.append((token.lastgroup, token[0]))
        place = token.end()
    return found
