"""From a request to a query: find the SQL, its data and settings, and leave out parameters of the transport."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from uuid import uuid4

from aaiclick.data.gateway import formats
from aaiclick.data.gateway.faults import fault
from aaiclick.data.gateway.http.blocks import unpack
from aaiclick.data.gateway.http.codecs import decompress
from aaiclick.data.gateway.http.multipart import ExternalTable, is_form, read_form, take_tables
from aaiclick.data.gateway.http.request_reader import BadRequest, Body, Head
from aaiclick.data.gateway.queries import GatewayQuery
from aaiclick.data.gateway.statements import Insert, insert_at, keyword, name_query, split_insert

SQL_BYTES_MAX = 1 << 26
INSERT_HEAD_BYTES_MAX = 1 << 20

NOT_SETTINGS = frozenset(
    (
        *("query", "database", "default_format", "query_id", "user", "password", "quota_key", "role", "stacktrace"),
        *("session_id", "session_timeout", "session_check", "close_session", "client_protocol_version"),
        *("compress", "decompress", "enable_http_compression", "http_zlib_compression_level"),
        *("buffer_size", "wait_end_of_query", "send_progress_in_http_headers", "http_headers_progress_interval_ms"),
        *("cancel_http_readonly_queries_on_client_close", "cancel_http_queries_on_client_close", "log_comment"),
    )
)
"""Parameters that are not passed to the engine as settings. Its log_comment identifies connections: see engine.py."""


def read_query(head: Head, body: Body, query_id: str) -> GatewayQuery:
    """Return the query of a request. The data of an insert is read from the request only as it is taken."""
    params = dict(head.params)
    pieces = decompress(head.headers.get("content-encoding", "").strip().lower(), body.pieces())
    pieces = unpack(pieces) if flag(head, "decompress") else pieces
    tables: list[ExternalTable] = []
    if is_form(head.headers.get("content-type", "")):
        form = read_form(head.headers["content-type"], pieces)
        params.update(form.fields)
        tables, pieces = take_tables(form.files, params), iter(())
    query = _find_sql(params.get("query", "").encode("utf-8", "surrogateescape"), pieces, query_id)
    query.tables = tables
    query.database = params.get("database") or head.headers.get("x-clickhouse-database")
    query.default_format = _default_format(params, head)
    query.params = {name[6:]: value for name, value in params.items() if name.startswith("param_")}
    query.settings = {
        name: value for name, value in params.items() if name not in NOT_SETTINGS and not name.startswith("param_")
    }
    return query


def choose_query_id(head: Head) -> str:
    """Return the query id that the client gave, or a new one; raise BadRequest if it cannot be printed."""
    given = head.params.get("query_id") or head.headers.get("x-clickhouse-query-id") or str(uuid4())
    if not given.isprintable():  # it is sent back in a header
        raise BadRequest(400, "The id of the query cannot be printed.")
    return given


def flag(head: Head, name: str) -> bool:
    """Return whether a parameter is 1 or true."""
    return head.params.get(name, "0").lower() in ("1", "true")


def number(head: Head, name: str, default: float) -> float:
    """Return a parameter that is a number; raise a Fault if it is not."""
    try:
        return float(head.params.get(name) or default)
    except ValueError:
        raise fault(36, "BAD_ARGUMENTS", f"{name} is not a number.") from None


def _default_format(params: dict[str, str], head: Head) -> str:
    name = params.get("default_format") or head.headers.get("x-clickhouse-format") or formats.DEFAULT
    if not (name.isascii() and name.isalnum()):
        raise fault(73, "UNKNOWN_FORMAT", "Unknown format in default_format.")
    return name


def _find_sql(sql: bytes, pieces: Iterator[bytes], query_id: str) -> GatewayQuery:
    """Return the query whose SQL is in the address, in the body, or in both; the data of an insert follows its SQL."""
    if keyword(sql) == "INSERT":
        insert = split_insert(sql) or _without_format(sql)
        if insert is not None:
            rest = sql[insert.data_at :]
            return GatewayQuery(
                query_id, sql, insert=insert, data=itertools.chain([rest] if rest.strip() else [], pieces)
            )
    text, ended = _take(sql + b"\n" if sql else b"", pieces, INSERT_HEAD_BYTES_MAX)
    insert = split_insert(text) if keyword(text) == "INSERT" else None
    # short VALUES may hold expressions and parameters
    if insert is not None and not (ended and insert.format == "Values"):
        return GatewayQuery(query_id, text, insert=insert, data=itertools.chain([text[insert.data_at :]], pieces))
    if not ended:
        text, ended = _take(text, pieces, SQL_BYTES_MAX)
    if not ended or len(text) > SQL_BYTES_MAX:
        raise BadRequest(413, f"The query is longer than {SQL_BYTES_MAX} bytes.")
    if not text.strip():
        raise fault(62, "SYNTAX_ERROR", "Syntax error: Empty query.")
    return GatewayQuery(query_id, name_query(text, query_id))


def _without_format(sql: bytes) -> Insert | None:
    """Return an INSERT in the address that has neither a format nor a query: its values are in the body."""
    words = {word.upper() for word in sql[insert_at(sql) :].split()}
    return None if words & {b"SELECT", b"WITH", b"INFILE"} else Insert(sql, "Values", len(sql))


def _take(text: bytes, pieces: Iterator[bytes], bytes_max: int) -> tuple[bytes, bool]:
    """Return the text with more pieces added until it has `bytes_max`, and whether these were all pieces."""
    gathered = bytearray(text)
    for piece in pieces:
        gathered += piece
        if len(gathered) >= bytes_max:
            return bytes(gathered), False
    return bytes(gathered), True
