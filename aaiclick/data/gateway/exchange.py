"""One exchange: who asks, what is asked, and the answer, whatever becomes of it."""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
import secrets
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, BinaryIO

from aaiclick.data.engine import DEFAULT_DATABASE, Engine
from aaiclick.data.gateway import codecs, formats
from aaiclick.data.gateway.faults import Fault, as_fault, fault
from aaiclick.data.gateway.queries import Outcome, Query, run
from aaiclick.data.gateway.replies import Headers, Reply
from aaiclick.data.gateway.requests import choose_query_id, flag, number, read_query
from aaiclick.data.gateway.running import Run, Running, Working
from aaiclick.data.gateway.sessions import TIMEOUT_S, Sessions
from aaiclick.data.gateway.wire import BadRequest, Body, BodyBroken, Head

if TYPE_CHECKING:
    from chdb.state.sqlitelike import Connection

BUFFER_BYTES = 1 << 20
"""An answer up to this size is sent when it is complete: an error in it still gets its status."""

MEMORY_BYTES_MAX = 1 << 25
"""An answer that must wait for its end is kept in memory up to this size, then in a temporary file."""

DRAIN_BYTES_MAX = 1 << 26
DRAIN_S = 5.0
LINGER_S = 0.5

PROGRESS_EVERY_MS = 10_000

NAME = "aaiclick"
PINGS = ("/ping", "/replicas_status")

log = logging.getLogger("aaiclick.gateway")


@dataclass(frozen=True)
class Service:
    """What all exchanges of a gateway share."""

    engine: Engine
    user: str
    password: str
    sessions: Sessions
    running: Running


def answer(service: Service, head: Head, reader: BinaryIO, client: socket.socket) -> bool:
    """Answer one request; gives whether the connection can be used for another."""
    reply = Reply(client, keep_alive=head.keep_alive, version=head.version)
    body = None
    try:
        body = Body(reader, head, reply.invite)
        _answer(service, head, body, reply, client)
    except BadRequest as error:
        refuse(reply, error.status, str(error))
    except (BodyBroken, OSError):
        return False  # the client has gone
    except _BrokenOff:
        _let_it_be_read(client)
        return False
    except Exception:
        log.exception("the gateway failed to answer a request")
        refuse(reply, 500, "The gateway failed to answer.")
    return _leave_nothing(body, client) and reply.keep_alive


def refuse(reply: Reply, status: int, text: str) -> None:
    """An answer to what is not a proper request; then the connection ends."""
    reply.keep_alive = False
    if not reply.started:
        said = f"{text}\n".encode()
        reply.send(status, {"Content-Type": "text/plain; charset=UTF-8"}, [said], len(said))


def _leave_nothing(body: Body | None, client: socket.socket) -> bool:
    """Read what the client still sends of a request that was answered early, else it may not see the answer."""
    if body is not None and not body.finished:
        client.settimeout(DRAIN_S)
        try:
            body.drain(DRAIN_BYTES_MAX)
        except (BodyBroken, BadRequest, OSError):
            return False
    return body is not None and body.finished


def _let_it_be_read(client: socket.socket) -> None:
    """Wait until the client hangs up, or a while: some forget what they have not read when the connection ends."""
    client.settimeout(LINGER_S)
    with suppress(OSError):
        while client.recv(4096):
            pass


def _answer(service: Service, head: Head, body: Body, reply: Reply, client: socket.socket) -> None:
    if head.path in PINGS:
        reply.send(200, _plain(), [b"Ok.\n"], 4, with_body=head.method != "HEAD")
    elif head.path != "/":
        raise BadRequest(404, f"There is no handle {head.path}.")
    elif head.method not in ("GET", "POST", "HEAD"):
        raise BadRequest(405, "Use GET or POST.")
    else:
        _answer_query(service, head, body, reply, client)


def _answer_query(service: Service, head: Head, body: Body, reply: Reply, client: socket.socket) -> None:
    headers = {**_plain(), "X-ClickHouse-Query-Id": choose_query_id(head)}
    try:
        _check_login(service, head)
        headers["X-ClickHouse-Timezone"] = service.engine.timezone
        query = read_query(head, body, headers["X-ClickHouse-Query-Id"])
        _refuse_changes_by_get(head, query)
        if query.keyword == "KILL":
            query.sql = service.running.with_engine_ids(query.sql)
        working = _working(head, reply)
        with (
            _engine_connection(service, head, query, client, working) as connection,
            run(query, connection) as outcome,
        ):
            _send(outcome, head, headers, reply)
    except (RuntimeError, Fault) as error:
        _tell(as_fault(error), headers, reply)


def _tell(found: Fault, headers: Headers, reply: Reply) -> None:
    if reply.started:
        raise _BrokenOff
    said = f"{found}\n".encode("utf-8", "surrogateescape")
    reply.send(found.status, {**headers, "X-ClickHouse-Exception-Code": str(found.code)}, [said], len(said))


class _BrokenOff(Exception):
    """The answer ended in an error that the client was told."""


def _plain() -> Headers:
    return {"Content-Type": "text/plain; charset=UTF-8", "X-ClickHouse-Server-Display-Name": NAME}


def knows_password(service: Service, head: Head) -> bool:
    """Whether user and password are right."""
    user, password = _login(head)
    right_user = hmac.compare_digest(user.encode("utf-8", "surrogateescape"), service.user.encode())
    right_password = hmac.compare_digest(password.encode("utf-8", "surrogateescape"), service.password.encode())
    return right_user and right_password


def _check_login(service: Service, head: Head) -> None:
    if not knows_password(service, head):
        user, _ = _login(head)
        text = f"{user}: Authentication failed: password is incorrect, or there is no user with such name."
        raise fault(516, "AUTHENTICATION_FAILED", text)


def _login(head: Head) -> tuple[str, str]:
    """User and password, from where they may be: Basic, ClickHouse's headers, the address."""
    kind, _, secret = head.headers.get("authorization", "").partition(" ")
    if kind.lower() == "basic":
        try:
            user, _, password = base64.b64decode(secret, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return "", ""
        return user, password
    if "x-clickhouse-user" in head.headers:
        return head.headers["x-clickhouse-user"], head.headers.get("x-clickhouse-key", "")
    return head.params.get("user", "default"), head.params.get("password", "")


def _refuse_changes_by_get(head: Head, query: Query) -> None:
    if head.method != "POST" and (not query.is_reading or query.keyword == "KILL"):
        text = "Cannot execute query in readonly mode. Method GET implies readonly: use POST for modifying queries."
        raise fault(164, "READONLY", text)


def _working(head: Head, reply: Reply) -> Working | None:
    """Clients that ask for it hear from a long query now and then, so that they do not take it for dead."""
    if not flag(head, "send_progress_in_http_headers"):
        return None
    return Working(reply.say_working, number(head, "http_headers_progress_interval_ms", PROGRESS_EVERY_MS) / 1000)


def _ends_with_client(head: Head, query: Query) -> bool:
    """Whether a query is stopped when its client has gone; one that makes a table then leaves nothing of it."""
    if query.keyword == "CREATE":
        return flag(head, "cancel_http_queries_on_client_close")
    return query.is_reading and flag(head, "cancel_http_readonly_queries_on_client_close")


@contextmanager
def _engine_connection(
    service: Service, head: Head, query: Query, client: socket.socket, working: Working | None
) -> Iterator[Connection]:
    """A connection to the engine for this query, which is known as running as long as it is lent."""
    watched = client if _ends_with_client(head, query) else None
    session_id = head.params.get("session_id")
    with ExitStack() as stack:
        if query.keyword != "KILL":  # that one must get through when nothing else does
            stack.enter_context(service.running.slot())
        if session_id:
            timeout_s = number(head, "session_timeout", TIMEOUT_S)
            lent = service.sessions.lend(session_id, timeout_s=timeout_s, must_exist=flag(head, "session_check"))
            session = stack.enter_context(lent)
            session.prepare(query.database, query.settings, leaves_traces=query.keyword in ("SET", "USE"))
            connection = session.connection
        else:
            database, reuse = query.database or DEFAULT_DATABASE, not query.spoils_connection
            lending = service.engine.connection(database=database, settings=query.settings, reuse=reuse)
            connection = stack.enter_context(lending)
        writer = None if query.is_reading else client
        stack.enter_context(service.running.enter(Run(query.query_id, connection, watched, working, writer)))
        yield connection


def _send(outcome: Outcome, head: Head, headers: Headers, reply: Reply) -> None:
    """Send the answer: whole if it is small or must wait for its end, else in chunks while it is made."""
    encoding = codecs.choose(head.headers.get("accept-encoding", "")) if flag(head, "enable_http_compression") else ""
    packer, tag = codecs.compressor(encoding), secrets.token_hex(8)
    headers = {**headers, **_labels(outcome, encoding, tag)}
    wait = flag(head, "wait_end_of_query") or head.method == "HEAD"
    buffer_bytes = int(number(head, "buffer_size", BUFFER_BYTES))
    with SpooledTemporaryFile(max_size=MEMORY_BYTES_MAX) as spool:
        try:
            for piece in outcome.pieces:
                packed = packer.add(piece)
                if reply.started:
                    reply.write(packed)
                    continue
                spool.write(packed)
                if not wait and spool.tell() > buffer_bytes:
                    reply.start(headers)
                    for kept in _kept(spool):
                        reply.write(kept)
        except (RuntimeError, Fault) as error:
            if reply.started:
                reply.fail_midway(packer.add(_trailer(as_fault(error), tag)) + packer.end())
            raise
        if reply.started:
            reply.write(packer.end())
            reply.end()
            return
        spool.write(packer.end() if spool.tell() or encoding else b"")
        length = spool.tell()
        headers["X-ClickHouse-Summary"] = outcome.counts.as_json()
        reply.send(200, headers, _kept(spool), length, with_body=head.method != "HEAD")


def _kept(spool: SpooledTemporaryFile[bytes]) -> Iterator[bytes]:
    spool.seek(0)
    while piece := spool.read(BUFFER_BYTES):
        yield piece


def _labels(outcome: Outcome, encoding: str, tag: str) -> Headers:
    labels = {"X-ClickHouse-Exception-Tag": tag}
    if outcome.format is not None:
        labels |= {"Content-Type": formats.content_type(outcome.format), "X-ClickHouse-Format": outcome.format}
    if encoding:
        labels["Content-Encoding"] = encoding
    return labels


def _trailer(found: Fault, tag: str) -> bytes:
    """How ClickHouse ends an answer that failed when a part of it was sent."""
    said = str(found).encode("utf-8", "surrogateescape")
    return b"\r\n__exception__\r\n%b\r\n%b\n%d %b\r\n__exception__\r\n" % (tag.encode(), said, len(said), tag.encode())
