"""One request and its answer, over plain HTTP."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from base64 import b64encode
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import lz4.frame
import pytest

from aaiclick.data.embedded.engine import Engine
from aaiclick.data.gateway import Gateway, exchange, sending
from aaiclick.data.gateway.http import codecs
from tests.data.gateway.conftest import PASSWORD, USER, Ask

FAILS_MIDWAY = "SELECT throwIf(number = 3000000) FROM numbers(10000000)"
FOREVER = "SELECT sum(sleepEachRow(0.000001)) FROM numbers(100000000000000)"
UNPACK = {"lz4": lz4.frame.decompress, "zstd": vars(codecs)["zstd"].decompress, "gzip": gzip.decompress}


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}


def test_a_ping_needs_no_password(ask: Ask) -> None:
    said = ask(_method="GET", _path="/ping", _headers={"X-ClickHouse-Key": "wrong"})
    assert (said.status, said.body) == (200, b"Ok.\n")


@pytest.mark.parametrize(("method", "body"), [("GET", b"Ok.\n"), ("HEAD", b"")])
@pytest.mark.parametrize("path", ["/", "/ping", "/replicas_status"])
def test_health_is_asked_for_without_a_password(line: HTTPConnection, method: str, body: bytes, path: str) -> None:
    for _ in range(2):  # on one connection
        line.request(method, path)
        answer = line.getresponse()
        assert (answer.status, answer.getheader("Content-Type"), answer.read()) == (
            200,
            "text/html; charset=UTF-8",
            body,
        )


def test_what_is_not_served_is_told_where_to_go(ask: Ask) -> None:
    said = ask(_method="GET", _path="/nowhere")
    assert (said.status, said.text.splitlines()[0]) == (404, "There is no handle /nowhere")
    assert "Use / or /ping for health checks." in said.text


def test_an_error_has_no_body_where_only_the_head_was_asked_for(ask: Ask) -> None:
    assert ask(_method="HEAD", query="SELECT nonsense").status == 404
    assert ask("SELECT 1").body == b"1\n"


def test_a_query_is_answered(ask: Ask) -> None:
    said = ask("SELECT number FROM numbers(3)", query_id="mine")
    assert (said.status, said.body) == (200, b"0\n1\n2\n")
    assert said.headers["x-clickhouse-query-id"] == "mine"
    assert said.headers["x-clickhouse-format"] == "TabSeparated"
    assert said.headers["content-type"] == "text/tab-separated-values; charset=UTF-8"
    assert said.headers["x-clickhouse-timezone"]
    assert json.loads(said.headers["x-clickhouse-summary"])["result_rows"] == "3"


@pytest.mark.parametrize(
    "headers", [basic(USER, PASSWORD), {"X-ClickHouse-User": USER, "X-ClickHouse-Key": PASSWORD}], ids=["basic", "key"]
)
def test_who_knows_the_password_is_let_in(ask: Ask, headers: dict[str, str]) -> None:
    assert ask("SELECT 1", _headers={"X-ClickHouse-User": "", **headers}).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        basic(USER, "wrong"),
        basic(USER, ""),
        basic("other", PASSWORD),
        {"Authorization": "Basic *"},
        {"X-ClickHouse-Key": ""},
        {"X-ClickHouse-Key": PASSWORD + "x"},
        {"X-ClickHouse-User": "other"},
    ],
)
def test_who_does_not_is_refused(ask: Ask, headers: dict[str, str]) -> None:
    said = ask("SELECT 1", _headers=headers)
    assert (said.status, said.code) == (403, 516)
    assert PASSWORD not in said.text


@pytest.mark.parametrize(
    ("sql", "status", "code"),
    [
        ("SELECT", 400, 62),
        ("SELECT nonsense", 404, 47),
        ("SELECT * FROM nowhere", 404, 60),
        ("SELECT 1 FORMAT Nonsense", 404, 73),
        (FAILS_MIDWAY, 500, 395),
        ("SELECT 1 SETTINGS nonsense = 1", 404, 115),
        ("INSERT INTO nowhere FORMAT CSV\n1", 404, 60),
        ("", 400, 62),
    ],
)
def test_an_error_has_its_code_and_status(ask: Ask, sql: str, status: int, code: int) -> None:
    said = ask(sql, wait_end_of_query=1)
    assert (said.status, said.code) == (status, code)
    assert said.text.startswith(f"Code: {code}.")
    assert said.headers["x-clickhouse-exception-tag"]
    assert ask("SELECT 7").body == b"7\n"


def test_an_error_after_the_first_rows_ends_the_answer(ask: Ask) -> None:
    said = ask(FAILS_MIDWAY, wait_end_of_query=0, buffer_size=1)
    assert said.status == 200
    tag = said.headers["x-clickhouse-exception-tag"]
    _, head, told = said.body.partition(f"__exception__\r\n{tag}\r\n".encode())
    assert head
    message, _, length_and_tag = told.removesuffix(b"\r\n__exception__\r\n").rpartition(b"\n")
    assert message.startswith(b"Code: 395.")
    assert length_and_tag == f"{len(message)} {tag}".encode()


@pytest.fixture(autouse=True)
def _chunks_may_break_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """http.client raises when an answer breaks off; here, what came until then is looked at."""
    import http.client

    whole = http.client.HTTPResponse.read

    def read(self: http.client.HTTPResponse, amt: int | None = None) -> bytes:
        try:
            return whole(self, amt)
        except http.client.IncompleteRead as error:
            self.close()
            return error.partial

    monkeypatch.setattr(http.client.HTTPResponse, "read", read)


@pytest.mark.parametrize("encoding", ["lz4", "zstd", "gzip"])
@pytest.mark.parametrize("rows", [0, 3, 500000])
def test_an_answer_is_packed_if_the_client_wants_it(ask: Ask, encoding: str, rows: int) -> None:
    headers = {"Accept-Encoding": encoding}
    said = ask(f"SELECT number FROM numbers({rows})", enable_http_compression=1, _headers=headers)
    assert said.headers["content-encoding"] == encoding
    assert UNPACK[encoding](said.body) == b"".join(b"%d\n" % number for number in range(rows))
    assert "content-encoding" not in ask("SELECT 1", _headers=headers).headers


def test_a_large_answer_comes_in_chunks_or_waits_for_its_end(ask: Ask) -> None:
    sql = "SELECT number FROM numbers(500000)"
    streamed, whole = ask(sql), ask(sql, wait_end_of_query=1)
    assert streamed.headers["transfer-encoding"] == "chunked"
    assert whole.headers["content-length"] == str(len(whole.body))
    assert streamed.body == whole.body


def test_an_answer_that_waits_need_not_fit_into_memory(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "MEMORY_BYTES_MAX", 1000)
    assert ask("SELECT number FROM numbers(100000)", wait_end_of_query=1).body.count(b"\n") == 100000


def test_rows_are_inserted_from_the_body(ask: Ask) -> None:
    ask("CREATE TABLE t (a UInt64, b String) ENGINE = MergeTree ORDER BY a")
    said = ask("INSERT INTO t FORMAT CSV", b"1,x\n2,y\n")
    assert (said.status, json.loads(said.headers["x-clickhouse-summary"])["written_rows"]) == (200, "2")
    assert "x-clickhouse-format" not in said.headers
    ask("INSERT INTO t VALUES (3, 'z'), (4, upper('w'))")
    ask("INSERT INTO t FORMAT TSV", gzip.compress(b"5\tv\n"), _headers={"Content-Encoding": "gzip"})
    ask("INSERT INTO t FORMAT TSV", iter([b"6\t", b"u\n"]))
    assert ask("SELECT groupArray((a, b)) FROM (SELECT * FROM t ORDER BY a) FORMAT TSVRaw").text == (
        "[(1,'x'),(2,'y'),(3,'z'),(4,'W'),(5,'v'),(6,'u')]\n"
    )


def test_parquet_goes_in_as_it_came_out(ask: Ask) -> None:
    ask("CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
    rows = ask("SELECT number AS a FROM numbers(1000) FORMAT Parquet").body
    assert ask("INSERT INTO t FORMAT Parquet", rows).status == 200
    assert ask("SELECT count(), sum(a) FROM t").body == b"1000\t499500\n"


def test_a_get_changes_nothing(ask: Ask) -> None:
    said = ask(_method="GET", query="CREATE TABLE t (a Int8) ENGINE = Memory")
    assert said.code == 164
    assert ask(_method="GET", query="EXISTS TABLE t").body == b"0\n"


@pytest.mark.parametrize(
    ("path", "method", "status"), [("/nowhere", "GET", 404), ("/", "PUT", 405), ("/", "DELETE", 405)]
)
def test_what_is_not_served_is_refused(ask: Ask, path: str, method: str, status: int) -> None:
    assert ask("SELECT 1", _path=path, _method=method).status == status


def test_a_session_is_had_over_http(ask: Ask) -> None:
    session = {"session_id": "mine", "session_timeout": 10}
    assert ask("SELECT 1", session_check=1, **session).code == 372
    ask("CREATE TEMPORARY TABLE t AS SELECT 5 AS x", **session)
    assert ask("SELECT x FROM t", session_check=1, **session).body == b"5\n"
    assert ask("SELECT x FROM t").code == 60


def test_settings_and_the_database_are_for_one_request(ask: Ask) -> None:
    assert ask("SELECT currentDatabase(), getSetting('max_threads')", database="system", max_threads=3).body == (
        b"system\t3\n"
    )
    assert ask("SELECT currentDatabase(), getSetting('max_threads') = 3").body == b"default\t0\n"
    assert ask("SELECT 1", database="nowhere").code == 81


def test_a_query_is_killed_by_its_id(ask: Ask, gateway: Gateway) -> None:
    told = []
    with connected(gateway) as client:
        client.sendall(request(FOREVER, "query_id=mine"))
        thread = threading.Thread(target=lambda: told.append(client.recv(1 << 16)))
        thread.start()
        while ask("SELECT count() FROM system.processes WHERE query LIKE 'SELECT sum(sleepEachRow%'").body != b"1\n":
            time.sleep(0.001)
        assert ask("SELECT 1", query_id="mine").code == 216
        assert ask("KILL QUERY WHERE query_id = 'mine'").status == 200
        thread.join()
    assert b"X-ClickHouse-Exception-Code: 394" in told[0]


def connected(gateway: Gateway) -> socket.socket:
    where = urlsplit(gateway.url)
    return socket.create_connection((where.hostname, where.port))


def request(sql: str, params: str = "", length: int | None = None) -> bytes:
    length = len(sql) if length is None else length
    login = f"X-ClickHouse-User: {USER}\r\nX-ClickHouse-Key: {PASSWORD}\r\n"
    return f"POST /?{params} HTTP/1.1\r\n{login}Content-Length: {length}\r\n\r\n{sql}".encode()


def processes(engine: Engine) -> int:
    """How many queries run, but for this one."""
    with engine.connection() as connection:
        found = str(connection.query("SELECT count() - 1 FROM system.processes", "TabSeparated"))
    return int(found)


def test_a_client_that_goes_away_ends_its_streaming_query(gateway: Gateway, engine: Engine) -> None:
    with connected(gateway) as client:
        client.sendall(request("SELECT number FROM numbers(100000000000000)"))
        assert client.recv(100).startswith(b"HTTP/1.1 200 OK")
        assert processes(engine) == 1
    while processes(engine):
        time.sleep(0.001)


def test_a_client_that_goes_away_before_the_first_row_ends_its_query(gateway: Gateway, engine: Engine) -> None:
    with connected(gateway) as client:
        client.sendall(request(FOREVER, "cancel_http_readonly_queries_on_client_close=1"))
        while not processes(engine):
            time.sleep(0.001)
    while processes(engine):
        time.sleep(0.001)


@pytest.mark.parametrize("chunked", [False, True])
def test_an_insert_whose_body_breaks_off_is_not_stored(
    ask: Ask, gateway: Gateway, engine: Engine, chunked: bool
) -> None:
    ask("CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
    sql = "INSERT INTO t FORMAT CSV\n1\n2\n"
    with connected(gateway) as client:
        if chunked:
            head = request("", "", 0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
            client.sendall(head + f"{len(sql):x}\r\n{sql}\r\n".encode())
        else:
            client.sendall(request(sql, length=len(sql) + 10))
        client.shutdown(socket.SHUT_WR)
        assert client.recv(100) == b""
    assert ask("SELECT count() FROM t").body == b"0\n"


def test_an_early_refusal_reaches_a_client_that_still_sends(ask: Ask) -> None:
    said = ask("INSERT INTO nowhere FORMAT CSV", b"1\n" * 10_000_000)
    assert said.code == 60
    assert ask("SELECT 1").body == b"1\n"


def test_curl_is_invited_to_send_a_large_body(gateway: Gateway) -> None:
    with connected(gateway) as client, client.makefile("rb") as reader:
        client.sendall(request("", length=8).replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))
        assert reader.readline() == b"HTTP/1.1 100 Continue\r\n"
        client.sendall(b"SELECT 1")
        assert [reader.readline() for _ in range(2)][1] == b"HTTP/1.1 200 OK\r\n"


def test_a_long_query_lets_its_client_know_that_it_runs(gateway: Gateway, ask: Ask) -> None:
    params = "send_progress_in_http_headers=1&http_headers_progress_interval_ms=1&query_id=mine"
    with connected(gateway) as client, client.makefile("rb") as reader:
        client.sendall(request(FOREVER, params))
        assert reader.readline() == b"HTTP/1.1 200 OK\r\n"
        assert reader.readline() == b"X-ClickHouse-Progress: {}\r\n"
        ask("KILL QUERY WHERE query_id = 'mine'")
        assert b"X-ClickHouse-Exception-Code: 394\r\n" in iter(reader.readline, b"\r\n")


def test_a_fault_of_ours_is_told_and_ends_the_connection(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise KeyError

    monkeypatch.setattr(exchange, "read_query", fails)
    said = ask("SELECT 1")
    assert (said.status, said.headers["connection"]) == (500, "close")


def test_a_query_knows_the_id_that_its_client_gave(ask: Ask) -> None:
    said = ask("SELECT queryID(), length(query_id()) FORMAT TSVWithNames", query_id="it's mine")
    assert said.text == "queryID()\tlength(query_id())\nit\\'s mine\t9\n"


def test_with_before_insert(ask: Ask) -> None:
    ask("CREATE TABLE t (a String) ENGINE = MergeTree ORDER BY a")
    said = ask("WITH x AS (SELECT 'one' AS a) INSERT INTO t SELECT a FROM x")
    assert json.loads(said.headers["x-clickhouse-summary"])["written_rows"] == "1"
    assert "x-clickhouse-format" not in said.headers
    ask("WITH {SELECT:Int32} AS value INSERT INTO t (a) FORMAT TabSeparated\ntwo;\n", param_SELECT=13)
    ask("WITH 1 AS y INSERT INTO t FORMAT CSV", b"three\n")
    assert ask("SELECT * FROM t ORDER BY a").body == b"one\nthree\ntwo;\n"
    assert ask(_method="GET", query="WITH 1 AS y INSERT INTO t SELECT 'four'").code == 164


@pytest.mark.parametrize(
    "sql",
    ["SELECT 1 INTO /* here */ OUTFILE '{0}'", "INSERT INTO FUNCTION null('a String') FROM INFILE '{0}' FORMAT CSV"],
)
def test_files_of_the_client_are_not_those_of_the_server(ask: Ask, tmp_path: Path, sql: str) -> None:
    said = ask(sql.format(tmp_path / "out"))
    assert said.code in (358, 78)
    assert not (tmp_path / "out").exists()
    assert ask("SELECT 'INTO OUTFILE', 1 AS outfile").body == b"INTO OUTFILE\t1\n"
