"""An answer on its way out: when it leaves, and what is free by then."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aaiclick.data.gateway import Gateway, sending, server
from aaiclick.data.gateway.http.replies import Reply
from tests.data.gateway.conftest import Ask
from tests.data.gateway.test_exchange import FAILS_MIDWAY, connected, request

ROW_BY_ROW = "SETTINGS max_block_size = 1"


def all_that_comes(gateway: Gateway, sql: str, params: str = "") -> bytes:
    """The whole answer, with its head; it may break off."""
    with connected(gateway) as client, client.makefile("rb") as reader:
        client.sendall(request(sql, params).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
        return reader.read()


@pytest.fixture
def busy_when_sent(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether a session was taken when the last bytes of each answer left."""
    found: list[bool] = []

    def watch(name: str) -> None:
        plain = getattr(Reply, name)

        def watched(self: Reply, *args: Any, **options: Any) -> None:
            sessions = gateway._service.sessions._sessions.values()
            found.append(any(session.busy.locked() for session in sessions))
            plain(self, *args, **options)

        monkeypatch.setattr(Reply, name, watched)

    for name in ("send", "end", "fail_midway"):
        watch(name)
    return found


@pytest.mark.parametrize(
    "sql",
    [
        *("SELECT 1", "SELECT number FROM numbers(500000)", "SELECT nonsense", "SELECT 1 FORMAT JSON", FAILS_MIDWAY),
        "CREATE TEMPORARY TABLE t (a Int8)",
    ],
)
def test_a_session_is_free_before_its_answer_leaves(gateway: Gateway, busy_when_sent: list[bool], sql: str) -> None:
    for _ in range(2):
        assert all_that_comes(gateway, sql, "session_id=mine")
    assert busy_when_sent == [False, False]


def test_a_slow_query_is_answered_as_it_goes(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "KEEP_S_MAX", 0.05)
    slow = f"SELECT sleepEachRow(0.01), throwIf(number = 20) FROM numbers(40) {ROW_BY_ROW}"
    told = all_that_comes(gateway, slow)
    assert told.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Transfer-Encoding: chunked\r\n" in told
    assert b"__exception__\r\n" in told
    assert b"\r\n0\r\n\r\n" not in told
    whole = all_that_comes(gateway, slow, "wait_end_of_query=1")
    assert whole.startswith(b"HTTP/1.1 500 ")


def test_a_row_does_not_wait_for_the_next_one(gateway: Gateway, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second row takes forever."""
    monkeypatch.setattr(sending, "KEEP_S_MAX", 0.05)
    monkeypatch.setattr(server, "LOOK_EVERY_S", 0.05)
    sql = f"SELECT if(number = 0, 0, sleepEachRow(3)) FROM numbers(100) {ROW_BY_ROW}"
    with connected(gateway) as client, client.makefile("rb") as reader:
        client.sendall(request(sql, "query_id=mine"))
        assert b"Transfer-Encoding: chunked\r\n" in list(iter(reader.readline, b"\r\n"))
        assert reader.readline() == b"2\r\n"
        assert reader.readline() == b"0\n"
        ask("KILL QUERY WHERE query_id = 'mine'")


def test_one_row_of_a_slow_query_comes_with_its_counts(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "KEEP_S_MAX", 0.01)
    said = ask("SELECT sleep(0.05)")
    assert said.headers["content-length"] == "2"
    assert json.loads(said.headers["x-clickhouse-summary"])["result_rows"] == "1"


def test_a_streamed_answer_tells_what_is_known_when_it_begins(ask: Ask) -> None:
    said = ask("SELECT number FROM numbers(500000)")
    assert said.headers["transfer-encoding"] == "chunked"
    assert int(json.loads(said.headers["x-clickhouse-summary"])["read_rows"]) > 0


def test_the_mark_of_errors_is_of_small_letters(ask: Ask) -> None:
    mark = ask("SELECT 1").headers["x-clickhouse-exception-tag"]
    assert (len(mark), mark.isalpha(), mark.islower()) == (16, True, True)
