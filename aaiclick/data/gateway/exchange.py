"""One exchange: check the login, read the query, run it, and answer, with the result or an error."""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from aaiclick.data.embedded.engine import DEFAULT_DATABASE, Engine
from aaiclick.data.gateway.faults import Fault, as_fault, fault
from aaiclick.data.gateway.http.replies import Headers, Reply
from aaiclick.data.gateway.http.request_reader import BadRequest, Body, BodyBroken, Head
from aaiclick.data.gateway.outside_access import check_reach
from aaiclick.data.gateway.queries import GatewayQuery, run
from aaiclick.data.gateway.requests import choose_query_id, flag, number, read_query
from aaiclick.data.gateway.running_queries import RunningQueries, RunningQuery, Working
from aaiclick.data.gateway.sending import PLAIN, BrokenOff, Sending
from aaiclick.data.gateway.sessions import TIMEOUT_S, GatewaySession, GatewaySessions

if TYPE_CHECKING:
    from chdb.state.sqlitelike import Connection

DRAIN_BYTES_MAX = 1 << 26
DRAIN_S = 5.0
LINGER_S = 0.5

PROGRESS_EVERY_MS = 10_000

NAME = "aaiclick"
PINGS = ("/ping", "/replicas_status")
NO_HANDLE = """There is no handle {}

Use / or /ping for health checks.
Or /replicas_status for more sophisticated health checks.

Send queries from your program with POST method or GET /?query=..."""

log = logging.getLogger("aaiclick.gateway")


FILES_HEADER = "x-aaiclick-files"
"""With `0`, a request does without files and addresses: a server passes it on for somebody else."""


@dataclass(frozen=True)
class Service:
    """What all exchanges of a gateway share."""

    engine: Engine
    user: str
    password: str
    sessions: GatewaySessions
    running: RunningQueries
    files: bool = False
    """Whether clients on a port may reach files and addresses too. Clients on the socket file are this user's own."""


def answer(service: Service, head: Head, reader: BinaryIO, client: socket.socket) -> bool:
    """Answer one request; return whether the connection can be used for another."""
    reply = Reply(client, keep_alive=head.keep_alive, version=head.version)
    body = None
    try:
        body = Body(reader, head, reply.invite)
        _answer(service, head, body, reply, client)
    except BadRequest as error:
        refuse(reply, error.status, str(error))
    except (BodyBroken, OSError):
        return False  # the client has gone
    except BrokenOff:
        _let_it_be_read(client)
        return False
    except Exception:
        log.exception("the gateway failed to answer a request")
        refuse(reply, 500, "The gateway failed to answer.")
    return _leave_nothing(body, client) and reply.keep_alive


def refuse(reply: Reply, status: int, text: str) -> None:
    """Answer a malformed request with an error, after which the connection is closed."""
    reply.keep_alive = False
    if not reply.started:
        said = f"{text}\n".encode()
        reply.send(status, {"Content-Type": PLAIN}, [said], len(said))


def _leave_nothing(body: Body | None, client: socket.socket) -> bool:
    """Read the rest of a request that was answered early, else the client may not see the answer.

    Return whether the body was read to its end.
    """
    if body is not None and not body.finished:
        client.settimeout(DRAIN_S)
        try:
            body.drain(DRAIN_BYTES_MAX)
        except (BodyBroken, BadRequest, OSError):
            return False
    return body is not None and body.finished


def _let_it_be_read(client: socket.socket) -> None:
    """Wait until the client closes, at most LINGER_S: some drop unread data when the connection ends."""
    client.settimeout(LINGER_S)
    with suppress(OSError):
        while client.recv(4096):
            pass


def _answer(service: Service, head: Head, body: Body, reply: Reply, client: socket.socket) -> None:
    if is_ping(head):
        headers = {"Content-Type": "text/html; charset=UTF-8"}
        reply.send(200, headers, [b"Ok.\n"], 4, with_body=head.method != "HEAD")
    elif head.path != "/":
        raise BadRequest(404, NO_HANDLE.format(head.path))
    elif head.method not in ("GET", "POST", "HEAD"):
        raise BadRequest(405, "Use GET or POST.")
    else:
        _answer_query(service, head, body, reply, client)


def is_ping(head: Head) -> bool:
    """Return whether a request asks for the gateway's health, which needs no password."""
    return head.path in PINGS or (head.path == "/" and head.method in ("GET", "HEAD") and not head.params)


def _answer_query(service: Service, head: Head, body: Body, reply: Reply, client: socket.socket) -> None:
    headers = {**_plain(), "X-ClickHouse-Query-Id": choose_query_id(head)}
    with Sending(head, headers, reply) as sending:
        try:
            _check_login(service, head)
            headers["X-ClickHouse-Timezone"] = service.engine.timezone
            query = read_query(head, body, headers["X-ClickHouse-Query-Id"])
            _refuse_changes_by_get(head, query)
            files = service.files or client.family == socket.AF_UNIX
            files = files and head.headers.get(FILES_HEADER) != "0"
            check_reach(query.statement, service.engine, files=files, settings=query.settings)
            if query.keyword == "KILL":
                query.sql = service.running.with_engine_ids(query.sql)
            with (
                _engine_connection(service, head, query, client, _news(head, reply, sending)) as connection,
                run(query, connection) as outcome,
            ):
                sending.take(outcome)
            sending.end()
        except (RuntimeError, Fault) as error:
            sending.fail(as_fault(error))


def _plain() -> Headers:
    return {"Content-Type": PLAIN, "X-ClickHouse-Server-Display-Name": NAME}


def knows_password(service: Service, head: Head) -> bool:
    """Return whether user and password are right; they are compared in constant time."""
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
    """Return user and password from the Authorization header, ClickHouse's headers or the address, in this order."""
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


def _refuse_changes_by_get(head: Head, query: GatewayQuery) -> None:
    if head.method != "POST" and (not query.is_reading or query.keyword == "KILL"):
        text = "Cannot execute query in readonly mode. Method GET implies readonly: use POST for modifying queries."
        raise fault(164, "READONLY", text)


def _news(head: Head, reply: Reply, sending: Sending) -> list[Callable[[], None]]:
    """Return what is called while a query runs: to send rows that are late and, if asked for, that it still runs."""
    if not flag(head, "send_progress_in_http_headers"):
        return [sending.send_if_late]
    every_s = number(head, "http_headers_progress_interval_ms", PROGRESS_EVERY_MS) / 1000
    return [sending.send_if_late, Working(reply.say_working, every_s).tell_if_due]


def _ends_with_client(head: Head, query: GatewayQuery) -> bool:
    """Return whether a query is stopped when its client closes; a CREATE that is stopped leaves no table."""
    if query.keyword == "CREATE":
        return flag(head, "cancel_http_queries_on_client_close")
    return query.is_reading and flag(head, "cancel_http_readonly_queries_on_client_close")


@contextmanager
def _engine_connection(
    service: Service, head: Head, query: GatewayQuery, client: socket.socket, news: Sequence[Callable[[], None]]
) -> Iterator[Connection]:
    """Lend a connection to the engine for this query, and register the query as running meanwhile."""
    watched = client if _ends_with_client(head, query) else None
    session_id = head.params.get("session_id")
    with ExitStack() as stack:
        session = stack.enter_context(_session(service, head, session_id)) if session_id else None
        if query.keyword != "KILL":  # KILL must run even if no slot is free
            stack.enter_context(service.running.slot())
        if session is not None:
            session.prepare(query.database, query.settings, leaves_traces=query.keyword in ("SET", "USE"))
            connection = session.connection
        else:
            database, reuse = query.database or DEFAULT_DATABASE, not query.spoils_connection
            lending = service.engine.connection(database=database, settings=query.settings, reuse=reuse)
            connection = stack.enter_context(lending)
        writer = None if query.is_reading else client
        stack.enter_context(service.running.enter(RunningQuery(query.query_id, connection, watched, news, writer)))
        yield connection


def _session(service: Service, head: Head, session_id: str) -> AbstractContextManager[GatewaySession]:
    return service.sessions.lend(
        session_id,
        timeout_s=number(head, "session_timeout", TIMEOUT_S),
        must_exist=flag(head, "session_check"),
        closes=flag(head, "close_session"),
    )
