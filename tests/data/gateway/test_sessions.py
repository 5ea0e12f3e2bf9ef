"""Sessions."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from aaiclick.data.embedded.engine import Engine
from aaiclick.data.gateway.faults import Fault
from aaiclick.data.gateway.sessions import GatewaySession, GatewaySessions

FAILS_MIDWAY = "SELECT throwIf(number = 3000000) FROM numbers(10000000)"
SETTINGS = "SELECT getSetting('max_threads'), getSetting('max_block_size')"


@pytest.fixture
def sessions(engine: Engine) -> Iterator[GatewaySessions]:
    found = GatewaySessions(engine)
    yield found
    found.close()


def rows(session: GatewaySession, sql: str) -> bytes:
    found: bytes = session.connection.query(sql, "TabSeparated").bytes()
    return found


def ask(session: GatewaySession, sql: str, database: str | None = None, **settings: str) -> bytes:
    session.prepare(database, settings, leaves_traces=sql.startswith(("SET", "USE")))
    return rows(session, sql)


def test_a_session_remembers(sessions: GatewaySessions) -> None:
    with sessions.lend("a") as session:
        rows(session, "CREATE TEMPORARY TABLE t AS SELECT 5 AS x")
    with sessions.lend("a") as session, sessions.lend("b") as other:
        assert rows(session, "SELECT x FROM t") == b"5\n"
        with pytest.raises(RuntimeError, match="Code: 60"):
            rows(other, "SELECT x FROM t")


def test_a_session_has_one_query_at_a_time(engine: Engine) -> None:
    sessions = GatewaySessions(engine, wait_s_max=0)
    with sessions.lend("a"), pytest.raises(Fault) as refused, sessions.lend("a"):
        pass
    assert refused.value.code == 373
    sessions.close()


def test_a_session_that_is_about_to_be_free_is_waited_for(sessions: GatewaySessions) -> None:
    """A client that left an answer unread asks again before the gateway has noticed."""
    entered, found = threading.Event(), list[bytes]()

    def ask_too() -> None:
        entered.set()
        with sessions.lend("a") as session:
            found.append(rows(session, "SELECT 1"))

    with sessions.lend("a"):
        thread = threading.Thread(target=ask_too)
        thread.start()
        entered.wait()
    thread.join()
    assert found == [b"1\n"]


def test_a_session_may_be_closed_with_its_last_request(sessions: GatewaySessions) -> None:
    with sessions.lend("a"):
        pass
    with sessions.lend("a", closes=True):
        pass
    with pytest.raises(Fault, match="not found"), sessions.lend("a", must_exist=True):
        pass


def test_a_session_that_must_exist(sessions: GatewaySessions) -> None:
    with pytest.raises(Fault) as refused, sessions.lend("a", must_exist=True):
        pass
    assert refused.value.code == 372
    with sessions.lend("a"):
        pass
    with sessions.lend("a", must_exist=True):
        pass


def test_a_session_ends_when_nobody_asks_for_it(sessions: GatewaySessions) -> None:
    with sessions.lend("a", timeout_s=0):
        sessions.end_expired()  # not while it is in use
    sessions.end_expired()
    with pytest.raises(Fault, match="not found"), sessions.lend("a", must_exist=True):
        pass


@pytest.mark.parametrize("timeout_s", [-1, 3601])
def test_a_session_lives_for_an_hour_at_most(sessions: GatewaySessions, timeout_s: float) -> None:
    with pytest.raises(Fault) as refused, sessions.lend("a", timeout_s=timeout_s):
        pass
    assert refused.value.code == 374


def test_a_session_goes_on_after_an_error_without_its_rows(sessions: GatewaySessions) -> None:
    with sessions.lend("a") as session:
        rows(session, "CREATE TEMPORARY TABLE t AS SELECT 5 AS x")
    with pytest.raises(RuntimeError, match="Code: 395"), sessions.lend("a") as session:
        rows(session, FAILS_MIDWAY)
    with sessions.lend("a") as session:
        assert rows(session, "SELECT x FROM t") == b"5\n"


def test_a_session_whose_connection_is_broken_ends(sessions: GatewaySessions) -> None:
    with sessions.lend("a") as session:
        session.is_clean = lambda: False  # type: ignore[method-assign]
    with pytest.raises(RuntimeError), sessions.lend("a") as session:
        rows(session, "nonsense")
    with pytest.raises(Fault, match="not found"), sessions.lend("a", must_exist=True):
        pass


def test_settings_of_a_request_do_not_outlive_it(sessions: GatewaySessions) -> None:
    with sessions.lend("a") as session:
        ask(session, "SET max_threads = 3")
        before = ask(session, SETTINGS)
        assert ask(session, SETTINGS, max_threads="5", max_block_size="1000") == b"5\t1000\n"
        assert ask(session, SETTINGS, max_threads="6") == before.replace(b"3\t", b"6\t")
        assert ask(session, SETTINGS) == before


def test_what_set_says_stays_also_when_a_request_had_it_otherwise(sessions: GatewaySessions) -> None:
    with sessions.lend("a") as session:
        ask(session, SETTINGS, max_threads="5")
        ask(session, "SET max_threads = 4", max_threads="5")
        assert ask(session, SETTINGS).startswith(b"4\t")


def test_a_setting_that_is_refused_leaves_the_others_as_they_were(sessions: GatewaySessions) -> None:
    with sessions.lend("a") as session:
        before = ask(session, SETTINGS)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="Code"):
                ask(session, SETTINGS, max_threads="5", max_block_size="nonsense")
        assert ask(session, SETTINGS) == before


def test_the_database_of_a_session(sessions: GatewaySessions) -> None:
    with sessions.lend("a") as session:
        ask(session, "CREATE DATABASE other")
        assert ask(session, "SELECT currentDatabase()", "other") == b"other\n"
        ask(session, "USE system")
        assert ask(session, "SELECT currentDatabase()") == b"system\n"
        assert ask(session, "SELECT currentDatabase()", "other") == b"other\n"
        assert ask(session, "SELECT currentDatabase()") == b"system\n"


def test_the_database_of_a_request_is_for_that_request(sessions: GatewaySessions) -> None:
    with sessions.lend("a") as session:
        ask(session, "CREATE DATABASE other")
        assert ask(session, "SELECT currentDatabase()", "other") == b"other\n"
        assert ask(session, "SELECT currentDatabase()") == b"default\n"
        ask(session, "SET max_threads = 3", "other")
        assert ask(session, "SELECT currentDatabase()") == b"default\n"
        ask(session, "USE system", "other")
        assert ask(session, "SELECT currentDatabase()") == b"system\n"


def test_a_database_that_is_not_there_changes_nothing(sessions: GatewaySessions) -> None:
    with sessions.lend("a") as session:
        for _ in range(2):
            with pytest.raises(RuntimeError, match="Code: 81"):
                ask(session, "SELECT 1", "nowhere")
        assert ask(session, "SELECT currentDatabase()") == b"default\n"


def is_closed(session: GatewaySession) -> bool:
    try:
        rows(session, "SELECT 1")
    except AttributeError:  # that of chdb, which has no connection any more
        return True
    return False


def test_a_session_in_use_is_closed_when_its_request_ends(engine: Engine) -> None:
    sessions = GatewaySessions(engine)
    with sessions.lend("a") as session:
        sessions.close()
        assert rows(session, "SELECT 5") == b"5\n"
    assert is_closed(session)


def test_a_session_is_closed_by_whoever_waited_for_it_while_all_were_closed(engine: Engine) -> None:
    sessions = GatewaySessions(engine, wait_s_max=60)
    found: list[GatewaySession] = []
    waiting = threading.Event()

    class Watched:
        """The lock of a session, which tells that somebody waits for it."""

        def __init__(self, lock: threading.Lock) -> None:
            self.acquire_, self.release = lock.acquire, lock.release

        def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
            if timeout > 0:
                waiting.set()
            return self.acquire_(blocking, timeout)

    def ask_too() -> None:
        with sessions.lend("a") as session:
            found.append(session)

    with sessions.lend("a") as session:
        session.busy = Watched(session.busy)  # type: ignore[assignment]
        asking = threading.Thread(target=ask_too)
        asking.start()
        assert waiting.wait(60)
        sessions.close()
    asking.join()
    assert is_closed(session)
    assert found[0] is not session
    sessions.close()
    assert is_closed(found[0])
