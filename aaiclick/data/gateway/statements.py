"""As much of SQL as a gateway must understand: what kind of statement it is, in which format it answers, where its
data begins. The engine understands the rest."""

from __future__ import annotations

import re
from typing import NamedTuple

READING = {"SELECT", "WITH", "FROM", "SHOW", "DESCRIBE", "DESC", "EXISTS", "EXPLAIN", "CHECK", "KILL"}
"""Statements that answer with rows."""

STREAMED = {"SELECT", "WITH", "FROM"}

STATELESS = READING | {"INSERT", "CREATE", "DROP", "ALTER", "TRUNCATE", "OPTIMIZE", "RENAME", "DELETE", "UPDATE"}
"""Statements that leave no trace on their connection, unless they make something temporary."""

_BLANK = rb"(?:\s|--[^\n]*+(?:\n|\Z)|\#[!\ ][^\n]*+(?:\n|\Z)|/\*(?:[^*]|\*(?!/))*+\*/)"
_STRING = rb"'(?:[^'\\]|\\.|'')*+'"
_NAME = rb'"(?:[^"\\]|\\.|"")*+"|`(?:[^`\\]|\\.|``)*+`'

_KEYWORD = re.compile(rb"(?:" + _BLANK + rb"|\()*+([A-Za-z]+)", re.S)
_TAIL_FORMAT = re.compile(rb"\bFORMAT\s+(\w+)(?:\s+SETTINGS\s[^;()]*)?(?:\s*;)?" + _BLANK + rb"*+\Z", re.I | re.S)
_CLOSED_COMMENT = rb"(?:--|\#[!\ ])[^\n]*+\n|/\*(?:[^*]|\*(?!/))*+\*/"
_WHOLE_TOKENS = re.compile(
    rb"(?:[^'\"`/#$-]++|" + _CLOSED_COMMENT + rb"|" + _STRING + rb"|" + _NAME + rb"|-(?!-)|/(?!\*)|\#(?![!\ ]))*+", re.S
)
_INSERT_TOKEN = re.compile(_BLANK + rb"++|" + _STRING + rb"|" + _NAME + rb"|\w++|.", re.S)
_TEMPORARY = re.compile(rb"\bTEMPORARY\b", re.I)
_BEFORE_DATA = re.compile(rb"[ \t\f]*;?[ \t\f]*\r?\n?")


class Insert(NamedTuple):
    """An INSERT with data: the statement, the data's format, and where in the text the data begins."""

    head: bytes
    format: str
    data_at: int


def keyword(sql: bytes) -> str:
    """The statement's first word, in capitals; empty if there is none."""
    found = _KEYWORD.match(sql)
    return found[1].decode().upper() if found else ""


def leaves_traces(sql: bytes) -> bool:
    """Whether the connection is another one afterwards: settings, a database, temporary tables."""
    return keyword(sql) not in STATELESS or _TEMPORARY.search(sql) is not None


class OutputFormat(NamedTuple):
    """The format that a query names; not for sure if it may stand in a string or a comment."""

    name: str
    sure: bool


def output_format(sql: bytes) -> OutputFormat | None:
    """The format at the end of a query; None if it names none."""
    found = _TAIL_FORMAT.search(sql)
    if found is None:
        return None
    sure = _WHOLE_TOKENS.fullmatch(sql, 0, found.start()) is not None
    return OutputFormat(found[1].decode(), sure)


def split_insert(sql: bytes) -> Insert | None:
    """Where the data of an INSERT begins; None if it takes its rows from a query, or the text ends too early."""
    depth = 0
    tokens = _INSERT_TOKEN.finditer(sql)
    for token in tokens:
        word = token[0].upper()
        depth += (word == b"(") - (word == b")")
        if depth or word in (b"(", b")"):
            continue
        if word == b"VALUES":
            return Insert(sql[: token.start()], "Values", token.end())
        if word in (b"SELECT", b"WITH", b"INFILE"):
            return None
        if word == b"FORMAT":
            named = next((other for other in tokens if not other[0].isspace()), None)
            if named is None or not re.fullmatch(rb"\w+", named[0]):
                return None
            return Insert(sql[: token.start()], named[0].decode(), _data_at(sql, named.end()))
    return None


def _data_at(sql: bytes, at: int) -> int:
    """Blanks and one line end after the format's name are not data."""
    found = _BEFORE_DATA.match(sql, at)
    return found.end() if found else at
