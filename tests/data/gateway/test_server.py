"""The server: its connections, and its end."""

from __future__ import annotations

import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from http.client import HTTPConnection, IncompleteRead
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from aaiclick.data.embedded.engine import Engine
from aaiclick.data.gateway import Gateway, server
from aaiclick.data.gateway.http.sockets import FILE, listen_in_private
from tests.data.gateway.conftest import PASSWORD, USER, Ask
from tests.data.gateway.test_exchange import FOREVER, connected, processes, request

REQUESTS = 1500 if "TEST_LONG" in os.environ else 120


def test_it_listens_on_this_machine_only(gateway: Gateway) -> None:
    assert gateway.url.startswith("http://127.0.0.1:")


def test_a_connection_serves_many_requests(ask: Ask, line: HTTPConnection) -> None:
    ask("SELECT 1")
    ours = line.sock.getsockname()
    assert [ask(f"SELECT {number}").text for number in range(3)] == ["0\n", "1\n", "2\n"]
    assert ask("SELECT nonsense").status == 404
    assert line.sock.getsockname() == ours


def test_requests_may_follow_each_other_without_waiting(gateway: Gateway) -> None:
    with connected(gateway) as client, client.makefile("rb") as reader:
        client.sendall(request("SELECT 1") + request("SELECT 2"))
        bodies = []
        for _ in range(2):
            length = next(
                int(line[16:]) for line in iter(reader.readline, b"\r\n") if line.startswith(b"Content-Length")
            )
            while reader.readline() != b"\r\n":
                continue
            bodies.append(reader.read(length))
        assert bodies == [b"1\n", b"2\n"]


def test_many_at_once(gateway: Gateway) -> None:
    def one(number: int) -> bytes:
        with connected(gateway) as client, client.makefile("rb") as reader:
            client.sendall(request(f"SELECT {number} + sum(number) - sum(number) FROM numbers(1000000)"))
            client.shutdown(socket.SHUT_WR)
            return reader.read().rpartition(b"\r\n\r\n")[2]

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(one, range(48))) == [b"%d\n" % number for number in range(48)]


def test_what_is_no_request_is_refused(gateway: Gateway) -> None:
    with connected(gateway) as client, client.makefile("rb") as reader:
        client.sendall(b"nonsense\r\n\r\n")
        assert reader.readline() == b"HTTP/1.1 400 Bad Request\r\n"
        assert reader.read().endswith(b"not a request of HTTP/1.1.\n")


def test_too_many_connections_are_turned_away(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 1)
    with connected(gateway) as first:
        first.sendall(request("SELECT 1"))
        assert first.recv(100)
        with connected(gateway) as second:
            assert second.recv(100) == b""


def test_it_stops_with_connections_that_are_open(engine: Engine) -> None:
    gateway = Gateway(engine, USER, PASSWORD).start()
    with connected(gateway) as silent, connected(gateway) as kept:
        kept.sendall(request("SELECT 1"))
        assert kept.recv(100)
        gateway.stop()
        assert silent.recv(100) == b""
        while kept.recv(100):
            continue
        with pytest.raises(OSError, match="refused"):
            connected(gateway)


def test_it_stops_what_still_runs_and_its_client_sees_the_connection_end(engine: Engine) -> None:
    gateway = Gateway(engine, USER, PASSWORD).start()
    with connected(gateway) as client:
        client.sendall(request(FOREVER))
        while not processes(engine):
            time.sleep(0.001)
        gateway.stop()
        assert client.recv(100) == b""
    assert processes(engine) == 0


def test_an_address_that_is_too_long_is_refused_and_the_client_hears_it(gateway: Gateway) -> None:
    with connected(gateway) as client, client.makefile("rb") as reader:
        client.sendall(b"GET /?" + b"x" * (3 << 20) + b" HTTP/1.1\r\n\r\n")
        assert reader.readline() == b"HTTP/1.1 414 Request-URI Too Long\r\n"


def test_it_lets_end_what_ends_soon(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "STOP_GRACE_S", 30.0)  # soon, on a busy machine
    gateway = Gateway(engine, USER, PASSWORD).start()
    with connected(gateway) as client, client.makefile("rb") as reader:
        client.sendall(request("SELECT sleep(1)"))
        while not processes(engine):
            time.sleep(0.001)
        gateway.stop()
        assert reader.read().endswith(b"\r\n\r\n0\n")


def test_it_waits_longer_for_what_changes_something(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "STOP_GRACE_S", 0.01)
    gateway = Gateway(engine, USER, PASSWORD).start()
    with connected(gateway) as client, client.makefile("rb") as reader:
        client.sendall(request("CREATE TABLE slow ENGINE = MergeTree ORDER BY () AS SELECT sleep(0.5)"))
        while not processes(engine):
            time.sleep(0.001)
        gateway.stop()
        assert reader.readline() == b"HTTP/1.1 200 OK\r\n"


def test_what_is_sent_when_it_stops_is_seen_not_to_be_taken(engine: Engine, tmp_path: Path) -> None:
    """On a socket file: then whoever sent it may send it to the next owner, whatever it is."""
    listener = listen_in_private(tmp_path / "data")
    assert listener is not None
    gateway = Gateway(engine, USER, PASSWORD, listener=listener, port=None).start()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(str(tmp_path / "data.run" / FILE))
        client.sendall(request("SELECT 1"))
        assert client.recv(4096).endswith(b"\r\n\r\n1\n")
        gateway.stop()
        with pytest.raises(BrokenPipeError):
            client.sendall(request("SELECT 2"))


def test_it_knows_how_long_nobody_has_asked(ask: Ask, gateway: Gateway, engine: Engine) -> None:
    ask("SELECT 1")
    since = gateway.idle_s
    ask(_method="GET", _path="/ping")
    while gateway.idle_s <= since:  # its thread may still be busy with the answer
        time.sleep(0.001)
    thread = threading.Thread(target=ask, args=(FOREVER,), kwargs={"query_id": "mine"})
    thread.start()
    while not processes(engine):
        time.sleep(0.001)
    assert gateway.idle_s == 0
    gateway._service.running.stop_all()
    thread.join()


def test_it_can_listen_where_it_is_told_to(engine: Engine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            Gateway(engine, USER, PASSWORD, port=port).start()
    gateway = Gateway(engine, USER, PASSWORD, port=port).start()
    assert urlsplit(gateway.url).port == port
    gateway.stop()


def test_strangers_do_not_shut_out_those_who_know_the_password(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More connections than the gateway takes, all of clients that say next to nothing."""
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 40)
    monkeypatch.setattr(server, "STRANGERS_MAX", 8)
    with ExitStack() as stack:
        known = [stack.enter_context(connected(gateway)) for _ in range(4)]
        for client in known:
            assert asked(client, 1).startswith(b"HTTP/1.1 200")
        slow = [stack.enter_context(connected(gateway)) for _ in range(60)]
        for client in slow:
            with suppress(OSError):  # hung up on already
                client.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
        for number in range(3):
            with connected(gateway) as client, client.makefile("rb") as reader:
                client.sendall(request(f"SELECT {number}"))
                client.shutdown(socket.SHUT_WR)
                assert reader.read().endswith(b"\r\n\r\n%d\n" % number)
        for client in known:
            assert asked(client, 7).startswith(b"HTTP/1.1 200")
        assert len(gateway._strangers) <= 8


def asked(client: socket.socket, number: int) -> bytes:
    """The whole answer, which may come in pieces."""
    client.sendall(request(f"SELECT {number}"))
    answer = b""
    while not answer.endswith(b"\r\n\r\n%d\n" % number):
        piece = client.recv(1 << 16)
        assert piece, answer
        answer += piece
    return answer


def test_a_stranger_is_hung_up_on_however_much_it_says(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then keeps a connection from being silent, not from being late."""
    monkeypatch.setattr(server, "STRANGER_S_MAX", 0.2)
    monkeypatch.setattr(server, "LOOK_EVERY_S", 0.05)
    with connected(gateway) as client:
        client.settimeout(0.1)
        client.sendall(b"POST / HTTP/1.1\r\nContent-Length: 1000000\r\n")
        ended = False
        while not ended:  # the test's own time limit ends it if the gateway does not
            try:
                client.sendall(b"x: y\r\n")
                ended = client.recv(1) == b""
            except TimeoutError:
                continue
            except OSError:
                ended = True


ASKED = [
    *("SELECT 1", "SELECT number FROM numbers(300000)", "SELECT nonsense", "SELECT 1 FORMAT JSON"),
    *("SET max_threads = 2", "SELECT throwIf(number = 3000000) FROM numbers(10000000)"),
]


def test_a_session_is_never_locked_for_whom_it_answered(gateway: Gateway) -> None:
    """Eight clients, each with a session and three connections, ask again as soon as they have an answer."""
    gateway._service.sessions._wait_s_max = 0
    numbers, where = iter(range(REQUESTS)), urlsplit(gateway.url)

    def ask(session: int) -> list[str | None]:
        codes = []
        lines = [HTTPConnection(where.hostname or "", where.port) for _ in range(3)]
        for number in numbers:
            line = lines[number % 3]
            headers = {"X-ClickHouse-User": USER, "X-ClickHouse-Key": PASSWORD}
            line.request("POST", f"/?session_id={session}", ASKED[number % len(ASKED)], headers)
            answer = line.getresponse()
            codes.append(answer.getheader("X-ClickHouse-Exception-Code"))
            try:
                answer.read()
            except IncompleteRead:  # it broke off, as it should
                line.close()
        for line in lines:
            line.close()
        return codes

    with ThreadPoolExecutor(8) as pool:
        codes = [code for found in pool.map(ask, range(8)) for code in found]
    assert (len(codes), set(codes)) == (REQUESTS, {None, "47"})
