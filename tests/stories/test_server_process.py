"""`aaiclick server start` in surroundings that are not kind: closed outputs, no home, no directory, impatient hands."""

from __future__ import annotations

import signal
import socket
import time
from pathlib import Path

import httpx
import pytest

from tests.support.program import GONE, program

CLOSED = 'exec "$0" "$@" >&- 2>&-'
WAIT_S_MAX = 60


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    return port


def ask(port: int, path: str) -> httpx.Response:
    """The answer of a server that may still be starting."""
    for _ in range(10 * WAIT_S_MAX):
        try:
            return httpx.get(f"http://127.0.0.1:{port}{path}", timeout=WAIT_S_MAX)
        except httpx.ConnectError:
            time.sleep(0.1)
    pytest.fail("it does not answer")


def test_with_closed_outputs_it_serves_and_ends_in_order(tmp_path: Path) -> None:
    port = free_port()
    with program(tmp_path, "server", "start", "--port", str(port), shell=CLOSED) as process:
        assert ask(port, "/readyz").json() == {"status": "ready"}
        process.send_signal(signal.SIGHUP)
        assert process.wait(WAIT_S_MAX) == 0


@pytest.mark.parametrize("verb", [["server", "start"], ["local", "start"]], ids=" ".join)
def test_in_a_directory_that_is_gone_it_says_so(tmp_path: Path, verb: list[str]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    with program(tmp_path, *verb, "--port", "0", shell=GONE, PLACE=str(gone)) as process:
        out, err = process.communicate(timeout=WAIT_S_MAX)
    assert (process.returncode, out, err.count("\n")) == (2, "", 1)
    assert "the current directory does not exist" in err


@pytest.mark.parametrize("verb", [["server", "start"], ["local", "start"]], ids=" ".join)
def test_without_a_home_it_says_what_to_set(tmp_path: Path, verb: list[str]) -> None:
    with program(tmp_path, *verb, "--port", "0", "--app-dir", str(tmp_path), AAICLICK_LOCAL_ROOT="") as process:
        out, err = process.communicate(timeout=WAIT_S_MAX)
    assert (process.returncode, out, err.count("\n")) == (2, "", 1)
    assert "AAICLICK_LOCAL_ROOT" in err


def test_a_second_ctrl_c_does_not_wait_for_answers_that_are_still_read(tmp_path: Path) -> None:
    """A caller that has sent half of its request holds the server up for its grace; impatient hands do not wait."""
    port = free_port()
    with program(tmp_path, "server", "start", "--port", str(port)) as process:
        assert ask(port, "/healthz").status_code == 200
        with socket.create_connection(("127.0.0.1", port)) as slow:
            slow.sendall(b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGINT)
            assert process.wait(WAIT_S_MAX) == 0
