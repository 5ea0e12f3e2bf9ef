"""Parse the little SQL that a gateway needs: the kind of a statement, its output format, and where its data begins.

The rest is left to the engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from aaiclick.data.sql import quoting as words

READING = {"SELECT", "WITH", "FROM", "SHOW", "DESCRIBE", "DESC", "EXISTS", "EXPLAIN", "CHECK", "KILL"}
"""Statements that answer with rows."""

STREAMED = {"SELECT", "WITH", "FROM"}

STATELESS = READING | {"INSERT", "CREATE", "DROP", "ALTER", "TRUNCATE", "OPTIMIZE", "RENAME", "DELETE", "UPDATE"}
"""Statements that do not change the state of their connection, unless they make something temporary."""

_BLANK = rb"(?:\s|--[^\n]*+(?:\n|\Z)|\#[!\ ][^\n]*+(?:\n|\Z)|/\*(?:[^*]|\*(?!/))*+\*/)"
_STRING = rb"'(?:[^'\\]|\\.|'')*+'"
_NAME = rb'"(?:[^"\\]|\\.|"")*+"|`(?:[^`\\]|\\.|``)*+`'

_KEYWORD = re.compile(rb"(?:" + _BLANK + rb"|\()*+([A-Za-z]+)", re.S)
_TAIL_FORMAT = re.compile(rb"\bFORMAT\s+(\w+)(?:\s+SETTINGS\s[^;()]*)?(?:\s*;)?" + _BLANK + rb"*+\Z", re.I | re.S)
_CLOSED_COMMENT = rb"(?:--|\#[!\ ])[^\n]*+\n|/\*(?:[^*]|\*(?!/))*+\*/"
_WHOLE_TOKENS = re.compile(
    rb"(?:[^'\"`/#$-]++|" + _CLOSED_COMMENT + rb"|" + _STRING + rb"|" + _NAME + rb"|-(?!-)|/(?!\*)|\#(?![!\ ]))*+", re.S
)
_OPENING, _CLOSING = (b"(", b"{", b"["), (b")", b"}", b"]")
_INSERT = re.compile(rb"\bINSERT\b", re.I)
_INTO = re.compile(rb"INSERT" + _BLANK + rb"++INTO\b", re.I | re.S)
_TOKEN = re.compile(_BLANK + rb"++|" + _STRING + rb"|" + _NAME + rb"|\w++|.", re.S)
_TEMPORARY = re.compile(rb"\bTEMPORARY\b", re.I)
_QUERY_ID = re.compile(
    _BLANK
    + rb"++|"
    + _STRING
    + rb"|"
    + _NAME
    + rb"|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$|\b(?P<name>queryID|query_id|initialQueryID|initial_query_id)\s*\(\s*\)",
    re.S,
)
_BEFORE_DATA = re.compile(rb"[ \t\f]*;?[ \t\f]*\r?\n?")


class Insert(NamedTuple):
    """An INSERT with data: the statement, the data's format, and where in the text the data begins."""

    head: bytes
    format: str
    data_at: int


def keyword(sql: bytes) -> str:
    """Return the first word of a statement in capitals, empty if there is none; INSERT for WITH … INSERT."""
    found = _KEYWORD.match(sql)
    word = found[1].decode().upper() if found else ""
    return "INSERT" if word == "WITH" and insert_at(sql) is not None else word


def insert_at(sql: bytes) -> int | None:
    """Return where INSERT begins, after a WITH if there is one; None if it is another statement."""
    found = _KEYWORD.match(sql)
    word = found[1].upper() if found else b""
    if found is None or word == b"INSERT":
        return None if found is None else found.start(1)
    if word != b"WITH" or not _INSERT.search(sql):
        return None
    return next((at for at, word in _words(sql, found.start(1)) if word == b"INSERT" and _INTO.match(sql, at)), None)


def _words(sql: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    """Yield the words outside of parentheses and braces, in capitals, up to one that begins a query."""
    depth = 0
    for token in _TOKEN.finditer(sql, at):
        word = token[0].upper()
        depth += (word in _OPENING) - (word in _CLOSING)
        if depth == 0:
            yield token.start(), word
            if word == b"SELECT":
                return


def leaves_traces(sql: bytes) -> bool:
    """Return whether a statement may change the state of its connection: settings, database, temporary tables."""
    return keyword(sql) not in STATELESS or _TEMPORARY.search(sql) is not None


class OutputFormat(NamedTuple):
    """The format that a query names; `sure` is False if the name may be in a string or a comment."""

    name: str
    sure: bool


def output_format(sql: bytes) -> OutputFormat | None:
    """Return the format at the end of a query; None if it names none."""
    found = _TAIL_FORMAT.search(sql)
    if found is None:
        return None
    sure = _WHOLE_TOKENS.fullmatch(sql, 0, found.start()) is not None
    return OutputFormat(found[1].decode(), sure)


def split_insert(sql: bytes) -> Insert | None:
    """Split an INSERT before its data; return None if its rows come from a query, or the text ends too early."""
    depth = 0
    tokens = _TOKEN.finditer(sql, insert_at(sql) or 0)
    for token in tokens:
        word = token[0].upper()
        depth += (word in _OPENING) - (word in _CLOSING)
        if depth:
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
    """Return where the data begins: blanks and one line end after the format's name do not belong to it."""
    found = _BEFORE_DATA.match(sql, at)
    return found.end() if found else at


def name_query(sql: bytes, query_id: str) -> bytes:
    """Replace the functions for the query's id in a statement by the id that the client gave.

    This is done for statements that read, and for INSERT. chdb offers no way to choose the id of a query. An alias
    keeps the names of columns.
    """
    word = keyword(sql)
    if b"query" not in sql.lower() or not (word in READING or word == "INSERT"):
        return sql
    text = words.text(query_id).encode("utf-8", "surrogateescape")

    def replaced(found: re.Match[bytes]) -> bytes:
        if not found["name"]:
            return found[0]
        return text if word == "INSERT" else b"(%b AS `%b()`)" % (text, found["name"])

    return _QUERY_ID.sub(replaced, sql)
