"""Run one query on a prepared connection, from what the client asked to the pieces of its answer."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aaiclick.data.embedded.engine import set_statement
from aaiclick.data.gateway import formats
from aaiclick.data.gateway.faults import fault
from aaiclick.data.gateway.http.multipart import ExternalTable
from aaiclick.data.gateway.statements import READING, STREAMED, Insert, keyword, leaves_traces, output_format
from aaiclick.data.sql import quoting as words

if TYPE_CHECKING:
    from chdb.state.sqlitelike import Connection

PORTION_BYTES = 1 << 22
"""Data is given to the engine, and taken from it, in portions of about this size."""

ONCE = {"insert_deduplication_token"}
"""Settings with a value for one query only."""


@dataclass
class GatewayQuery:
    """A query of a client, with its settings, parameters, data and external tables."""

    query_id: str
    sql: bytes
    insert: Insert | None = None
    data: Iterable[bytes] = ()
    database: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    tables: list[ExternalTable] = field(default_factory=list)
    default_format: str = formats.DEFAULT

    @property
    def keyword(self) -> str:
        return keyword(self.sql)

    @property
    def statement(self) -> bytes:
        """Return the statement, without the data of an insert."""
        return self.sql if self.insert is None else b"%b FORMAT %b" % (self.insert.head, self.insert.format.encode())

    @property
    def is_reading(self) -> bool:
        """Return whether the query answers with rows and changes no data."""
        return self.keyword in READING

    @property
    def spoils_connection(self) -> bool:
        """Return whether the query leaves its connection in another state, or needs one that suits no other query."""
        if self.insert is not None and (self.params or ONCE & self.settings.keys()):
            return True
        return leaves_traces(self.sql) or bool(self.tables)


@dataclass
class Counts:
    """The numbers of X-ClickHouse-Summary; the rows of a streamed answer are known when it has ended.

    For a streamed answer, the read rows and bytes are those that the engine has reported: the last blocks may be
    missing.
    """

    read_rows: int = 0
    read_bytes: int = 0
    written_rows: int = 0
    written_bytes: int = 0
    result_rows: int = 0
    result_bytes: int = 0
    began_at: float = field(default_factory=time.perf_counter)

    def as_json(self) -> str:
        names = ("read_rows", "read_bytes", "written_rows", "written_bytes", "result_rows", "result_bytes")
        told = {name: str(getattr(self, name)) for name in names}
        elapsed_ns = int((time.perf_counter() - self.began_at) * 1e9)
        return json.dumps({**told, "total_rows_to_read": "0", "elapsed_ns": str(elapsed_ns)})


@dataclass
class Outcome:
    """The answer: its format, None if there is none to give, and its pieces, which are computed as they are taken."""

    format: str | None
    pieces: Generator[bytes]
    counts: Counts


@contextmanager
def run(query: GatewayQuery, connection: Connection) -> Iterator[Outcome]:
    """Run a query with its external tables; take the pieces of the answer inside the block."""
    try:
        for table in query.tables:
            _make_table(table, connection)
        outcome = _run(query, connection)
        try:
            yield outcome
        finally:
            outcome.pieces.close()
    except BaseException:
        with suppress(RuntimeError):  # the first error is the one to report
            _drop_tables(query, connection)
        raise
    _drop_tables(query, connection)


def _run(query: GatewayQuery, connection: Connection) -> Outcome:
    counts = Counts()
    if query.insert is not None:
        _insert(query, query.insert, connection, counts)
        return Outcome(None, _nothing(), counts)
    named = output_format(query.sql)
    name = named.name if named else query.default_format
    joiner = formats.joiner(name) if named is None or named.sure else None
    if joiner is not None and _can_stream(query):
        return Outcome(name, _stream(query, connection, name, joiner, counts), counts)
    pieces = _whole(query, connection, name, counts)
    return Outcome(name if query.is_reading else None, pieces, counts)


def _can_stream(query: GatewayQuery) -> bool:
    """Return whether chdb can stream the answer: rows of a SELECT, without totals and extremes, which it misplaces."""
    if query.keyword not in STREAMED or "extremes" in query.settings:
        return False
    text = query.sql.lower()
    return b"totals" not in text and b"extremes" not in text and b"outfile" not in text


def _stream(
    query: GatewayQuery, connection: Connection, name: str, joiner: formats.Joiner, counts: Counts
) -> Generator[bytes]:
    """Yield the rows as the engine computes them; closing the generator early cancels the query.

    The fetch is chdb's inner one: that of StreamingResult drops a last piece without rows, such as a header alone.
    """
    stream = connection.send_query(query.sql, name, params=query.params)
    fetch: Any = stream._conn.streaming_fetch_result
    try:
        rows = -1
        while rows:
            block = fetch(stream._result)
            rows = block.rows_read()
            counts.result_rows += rows
            counts.read_rows += block.storage_rows_read()  # since the block before
            counts.read_bytes += block.storage_bytes_read()
            yield _counted(joiner.add(block.bytes()), counts)
    except BaseException:
        _cancel(stream)
        raise
    yield _counted(joiner.end(), counts)


def _cancel(stream: Any) -> None:
    """Cancel a stream; one that has failed has ended already, and raises an error that is ignored."""
    with suppress(RuntimeError):
        stream.cancel()


def _whole(query: GatewayQuery, connection: Connection, name: str, counts: Counts) -> Generator[bytes]:
    """Run the query at once and return the answer in portions; the engine holds all of it in memory until the last."""
    _refuse_several(query.sql, connection)
    result = connection.query(query.sql, name, params=query.params)
    counts.result_rows, counts.result_bytes = result.rows_read(), result.size()
    counts.read_rows, counts.read_bytes = result.storage_rows_read(), result.storage_bytes_read()
    counts.written_rows, counts.written_bytes = result.rows_written(), result.bytes_written()
    return _portions_of(result) if result.size() else _nothing()


def _nothing() -> Generator[bytes]:
    yield from ()


def _portions_of(result: Any) -> Generator[bytes]:
    view = result.get_memview().view()  # valid as long as the result is
    for at in range(0, len(view), PORTION_BYTES):
        yield bytes(view[at : at + PORTION_BYTES])


def _refuse_several(sql: bytes, connection: Connection) -> None:
    """Raise a Fault for several statements: chdb would run them one after the other, but HTTP takes one."""
    if b";" not in sql.rstrip(b"; \t\r\n"):
        return
    inner: Any = connection._conn
    if inner.classify_query(sql.decode("utf-8", "replace"))["statement_count"] > 1:
        raise fault(62, "SYNTAX_ERROR", "Multi-statements are not allowed.")


def _insert(query: GatewayQuery, insert: Insert, connection: Connection, counts: Counts) -> None:
    """Give the data to the engine as it arrives. If it breaks off, what the engine has not stored yet is dropped.

    As in ClickHouse, a large insert is stored block by block: blocks that were stored before stay.
    """
    if query.params:  # a streamed insert takes no parameters
        connection.query(
            set_statement({f"param_{name}": value for name, value in query.params.items()}), "TabSeparated"
        )
    stream = connection.send_insert(insert.head, insert.format)
    try:
        for portion in portions(query.data):
            stream.append(portion)
            counts.read_bytes += len(portion)
        done = stream.finish()
    except BaseException:
        _cancel(stream)
        raise
    counts.written_rows, counts.written_bytes = done.rows_written, done.bytes_written
    counts.read_rows = counts.result_rows = done.rows_written


def portions(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes, in fewer pieces."""
    gathered = bytearray()
    for piece in pieces:
        gathered += piece
        if len(gathered) >= PORTION_BYTES:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)


def _make_table(table: ExternalTable, connection: Connection) -> None:
    name = words.name(table.name)
    connection.query(f"CREATE TEMPORARY TABLE {name} ({table.structure}) ENGINE = Memory", "TabSeparated")
    with connection.send_insert(f"INSERT INTO {name}", table.format) as stream:
        for portion in portions([table.rows]):
            stream.append(portion)
        stream.finish()


def _drop_tables(query: GatewayQuery, connection: Connection) -> None:
    for table in query.tables:
        connection.query(f"DROP TEMPORARY TABLE IF EXISTS {words.name(table.name)}", "TabSeparated")


def _counted(piece: bytes, counts: Counts) -> bytes:
    counts.result_bytes += len(piece)
    return piece
