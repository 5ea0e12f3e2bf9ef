"""The queries that run now."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from aaiclick.data.embedded.engine import Engine
from aaiclick.data.gateway.faults import Fault
from aaiclick.data.gateway.running_queries import RunningQueries, RunningQuery, Working

FOREVER = "SELECT sum(sleepEachRow(0.000001)) FROM numbers(100000000000000)"


@pytest.fixture
def running(engine: Engine) -> RunningQueries:
    return RunningQueries(engine)


@contextmanager
def forever(
    engine: Engine, running: RunningQueries, query_id: str, client: socket.socket | None = None
) -> Iterator[list[str]]:
    """A query that does not end by itself; gives what it was told at its end, when it has ended."""
    told: list[str] = []

    def work(connection: Any) -> None:
        with running.enter(RunningQuery(query_id, connection, client)):
            try:
                connection.query(FOREVER)
            except RuntimeError as error:
                told.append(str(error))

    connection = engine.connect()
    thread = threading.Thread(target=work, args=(connection,))
    thread.start()
    while engine.running_id(connection) is None:
        time.sleep(0.001)
    yield told
    thread.join()
    connection.close()


def test_a_query_is_killed_by_the_id_that_its_client_gave(engine: Engine, running: RunningQueries) -> None:
    with forever(engine, running, "mine") as told, engine.connection() as connection:
        kill = running.with_engine_ids(b"KILL QUERY WHERE query_id IN ('mine', 'other')")
        assert b"'mine'" not in kill
        assert b"'other'" in kill
        connection.query(kill)
    assert "Code: 394" in told[0]


def test_an_id_that_is_not_running_stays_as_it_is(running: RunningQueries) -> None:
    kill = b"KILL QUERY WHERE query_id = 'it\\'s' OR user = 'default'"
    assert running.with_engine_ids(kill) == kill


def test_an_id_runs_once(engine: Engine, running: RunningQueries) -> None:
    with engine.connection() as connection, running.enter(RunningQuery("mine", connection)):
        with pytest.raises(Fault) as refused, running.enter(RunningQuery("mine", connection)):
            pass
        assert refused.value.code == 216
    with engine.connection() as connection, running.enter(RunningQuery("mine", connection)):
        pass


def test_a_query_whose_client_has_gone_is_stopped(engine: Engine, running: RunningQueries) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        with forever(engine, running, "mine", ours) as told:
            theirs.sendall(b"GET / HTTP/1.1")  # a client that sends more has not gone
            running.stop_abandoned()
            assert not told
            theirs.close()
            running.stop_abandoned()
        assert "Code: 394" in told[0]


def test_everything_is_stopped(engine: Engine, running: RunningQueries) -> None:
    with forever(engine, running, "one") as one, forever(engine, running, "two") as two:
        running.stop_all()
    assert "Code: 394" in one[0]
    assert "Code: 394" in two[0]


def test_more_than_so_many_wait(engine: Engine) -> None:
    running = RunningQueries(engine, at_once_max=1)
    entered, second = threading.Event(), threading.Event()

    def wait() -> None:
        entered.set()
        with running.slot():
            second.set()

    with running.slot():
        thread = threading.Thread(target=wait)
        thread.start()
        entered.wait()
        assert not second.is_set()
    thread.join()
    assert second.is_set()


def test_nobody_waits_forever(engine: Engine) -> None:
    running = RunningQueries(engine, at_once_max=1, wait_s_max=0.001)
    with running.slot(), pytest.raises(Fault) as refused, running.slot():
        pass
    assert (refused.value.code, refused.value.status) == (202, 503)


def test_clients_hear_that_their_queries_run(engine: Engine, running: RunningQueries) -> None:
    told: list[str] = []
    with engine.connection() as connection:
        with running.enter(
            RunningQuery("a", connection, news=[Working(lambda: told.append("now"), every_s=0).tell_if_due])
        ):
            running.tell_clients()
        with running.enter(
            RunningQuery("b", connection, news=[Working(lambda: told.append("later"), every_s=3600).tell_if_due])
        ):
            running.tell_clients()
    assert told == ["now"]
