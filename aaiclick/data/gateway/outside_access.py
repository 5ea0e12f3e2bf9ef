"""Refuse what reaches outside of the engine: INTO OUTFILE, and functions, engines and sources for files and addresses.

The engine's own formatter removes comments and other ways to hide a name from a statement; it is asked only about
statements that contain such a name somewhere.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from aaiclick.data.embedded.engine import Engine
from aaiclick.data.gateway.faults import Fault, fault
from aaiclick.data.sql.closed_functions import CLOSED_TABLES, FAMILIES, FILES, FILTERS, NETWORK, STRUCTURED, hides_calls

HARMLESS = {"dictionary", "fuzzquery", "input", "loop", "viewexplain", "cluster", "clusterallreplicas"}
"""Table functions that read only what is in the engine, which other programs may read."""

ENGINES = {
    "filelog",
    "executablepool",
    "embeddedrocksdb",
    "keepermap",
    "materializedpostgresql",
    "materializedmysql",
    "queryrunner",
}
DATABASES = {"backup", "datalakecatalog"}
SOURCES = {"http", "clickhouse", "cassandra", "disk", "executable"}
STATEMENTS = {"BACKUP", "RESTORE"}

OUTSIDE = (CLOSED_TABLES - HARMLESS) | ENGINES | DATABASES | SOURCES
"""Table functions, engines of tables and databases, and sources of dictionaries that reach outside, in lower case."""

_FUNCTION = re.compile("|".join(re.escape(name).replace(r"\*", r"\w*") for name in (*FILES, *NETWORK)), re.I)
_BEGINNINGS = tuple(name for name in FAMILIES if name not in ("mergetree", "timeseries"))
_TAKE_FUNCTIONS = ("APPLY", "ARRAY", "MAP")

_FUNCTIONS = [name.lower().encode() for name in (*FILES, *NETWORK)]
_HINTS = {name.encode() for name in OUTSIDE} | {b"backup", b"restore", b"attach", *_FUNCTIONS}
_HINTS |= {name.encode() for name in FILTERS}
_HINTS_BEGIN = (*(name.encode() for name in _BEGINNINGS), *(name[:-1] for name in _FUNCTIONS if name.endswith(b"*")))
_STRUCTURED = re.compile(rf"\b(?:{'|'.join(STRUCTURED)})[`\"]?\s*(?:\(|/\*|--|#)".encode())
_WORD = re.compile(rb"[a-z_]\w*+")
_TOKEN = re.compile(
    r"""(?P<text>'(?: [^'\\] | \\. | '' )*+')
      | ` (?P<quoted> (?: [^`\\] | \\. | `` )*+ ) ` | (?P<word> [^\W\d]\w*+ ) | \d\w*+ | \S""",
    re.VERBOSE | re.DOTALL,
)


def check_reach(statement: bytes, engine: Engine, *, files: bool, settings: Iterable[str] = ()) -> None:
    """Refuse statements that reach outside: without `files` all of them, else only those that use files of the client.

    The client's own files, as in INTO OUTFILE and FROM INFILE, are not on the server.
    """
    if not files and (named := FILTERS.intersection(settings)):
        raise _closed(min(named))
    if not _may_reach(statement.lower(), files=files):
        return
    tokens = list(_TOKEN.finditer(_formatted(statement, engine)))
    words = [(token["word"] or "").upper() for token in tokens]
    for two in itertools.pairwise(words):
        if two == ("INTO", "OUTFILE"):
            raise fault(358, "INTO_OUTFILE_NOT_ALLOWED", "INTO OUTFILE is not allowed.")
        if two == ("FROM", "INFILE"):
            raise fault(78, "UNKNOWN_TYPE_OF_QUERY", "Query has infile and was send directly to server.")
    if files:
        return
    if words[0] in STATEMENTS or (words[0] == "ATTACH" and "FROM" in words):
        raise _closed(words[0])
    texts = [token[0] for token in tokens]
    for at, token in enumerate(tokens):
        name = token["word"] or token["quoted"] or ""
        if name and (_is_outside(name, texts, at) or hides_calls(name, texts, at)):
            raise _closed(name)


def _may_reach(statement: bytes, *, files: bool) -> bool:
    """Return whether a statement, in lower case, contains a name for which the formatter has to be asked."""
    if b"outfile" in statement or b"infile" in statement:
        return True
    words = set() if files else set(_WORD.findall(statement))
    if not words.isdisjoint(_HINTS) or any(word.startswith(_HINTS_BEGIN) for word in words):
        return True
    return not files and _STRUCTURED.search(statement) is not None


def _is_outside(name: str, texts: list[str], at: int) -> bool:
    """Return whether the token at this place calls something that reaches outside."""
    before, after = [text.upper() for text in texts[max(at - 2, 0) : at]], "".join(texts[at + 1 : at + 2])
    is_table = before[-1:] in (["INTO"], ["."], ["EXISTS"]) or before == ["CREATE", "TABLE"]
    is_called = (after == "(" and not is_table) or before == ["ENGINE", "="]
    small = name.lower()
    if is_called and (small in OUTSIDE or small.startswith(_BEGINNINGS)):
        return True
    is_given = before[-1:] == ["APPLY"] or (before[-1:] == ["("] and before[0].startswith(_TAKE_FUNCTIONS))
    return (is_called or is_given) and _FUNCTION.fullmatch(name) is not None


def _closed(name: str) -> Fault:
    text = f"{name} reaches files or addresses, which is closed here. AAICLICK_GATEWAY_FILES=1 opens it."
    return fault(497, "ACCESS_DENIED", text)


def _formatted(statement: bytes, engine: Engine) -> str:
    """Return the statement as the engine's parser formats it; a syntax error is raised as for the statement itself."""
    text = statement.replace(b"\\", b"\\\\").replace(b"'", b"\\'")
    with engine.connection(settings={"max_query_size": "0"}) as connection:
        found = connection.query(b"SELECT formatQuerySingleLine('%b')" % text, "RawBLOB").bytes()
    return str(found, "utf-8", "surrogateescape")
