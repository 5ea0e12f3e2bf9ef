"""`aaiclick server start`, as a process of its own: ports, addresses, signals."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from aaiclick.orchestration.access.tokens import create_token
from tests.cli.conftest import Cli
from tests.support import warm

ROOT = Path(__file__).parents[3]


@contextmanager
def serving(*options: str, open_files: int | None = None) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server and where it is; ended with the block. So many files may it open, if that is said."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "aaiclick", "server", "start", "--port", "0", *options]
    if open_files is not None:
        command = ["sh", "-c", f'ulimit -n {open_files}; exec "$@"', "sh", *command]
    process = warm.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.fullmatch(r"aaiclick: serving (http://\S+)/api/v1\n", line)
        assert found, line
        yield process, found[1]
    finally:
        process.kill()
        process.communicate()


def new_token(role: str = "viewer") -> dict[str, str]:
    return {"Authorization": f"Bearer {asyncio.run(create_token('x', role)).text}"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_end(number: int) -> None:
    headers = new_token()
    with serving() as (process, where):
        assert where.startswith("http://127.0.0.1:")
        answer = httpx.get(f"{where}/api/v1/jobs", headers=headers)
        assert (answer.status_code, answer.json()) == (200, {"jobs": [], "next": None})
        assert "server" not in answer.headers
        assert httpx.get(f"{where}/readyz").json() == {"status": "ready"}
        assert httpx.get(f"{where}/api/v1/jobs").status_code == 401
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert process.returncode in (0, 130, -number)
        assert "Traceback" not in err


def test_a_stream_ends_with_the_server() -> None:
    headers = new_token()
    with serving() as (process, where):
        heard: list[str] = []
        begun = threading.Event()

        def listen() -> None:
            with httpx.stream("GET", f"{where}/api/v1/events/stream", headers=headers, timeout=60) as answer:
                for line in answer.iter_lines():
                    heard.append(line)
                    begun.set()

        listener = threading.Thread(target=listen)
        listener.start()
        assert begun.wait(60)
        process.send_signal(signal.SIGTERM)
        listener.join(60)
        assert not listener.is_alive()
        process.communicate(timeout=60)
        assert heard[0] == ": here"


def test_a_port_that_is_taken(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        answer = cli("server", "start", "--port", str(taken.getsockname()[1]))
    assert answer.code == 2
    assert "another process listens there" in answer.err
    assert len(answer.err.splitlines()) == 1


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_beyond_this_machine_it_needs_a_token(cli: Cli, host: str) -> None:
    answer = cli("server", "start", "--host", host)
    assert answer.code == 2
    assert "needs a valid token" in answer.err


def test_with_a_token_it_listens_everywhere_and_is_known_by_no_foreign_name() -> None:
    headers = new_token()
    with serving("--host", "0.0.0.0") as (_, where):
        assert where.startswith("http://0.0.0.0:")
        there = where.replace("0.0.0.0", "127.0.0.1")
        assert httpx.get(f"{there}/api/v1/jobs", headers=headers).status_code == 200
        assert httpx.get(f"{there}/api/v1/jobs", headers=headers | {"Host": "evil.example"}).status_code == 403


@pytest.mark.parametrize(
    ("option", "value"), [("--host", "no.such.host.invalid"), ("--port", "65536"), ("--port", "x")]
)
def test_an_address_that_is_none(cli: Cli, option: str, value: str) -> None:
    asyncio.run(create_token("x"))
    assert cli("server", "start", option, value).code == 2


def test_strangers_with_slow_bodies_end_neither_the_descriptors_nor_the_log() -> None:
    """More connections than the server may have open files, each with a body that never ends."""
    headers = new_token()
    with serving(open_files=200) as (process, where):
        address = ("127.0.0.1", int(where.rpartition(":")[2]))
        begun = b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n{"
        crowd = []
        for _ in range(260):
            crowd.append(socket.create_connection(address))
            crowd[-1].sendall(begun)
        assert httpx.get(f"{where}/api/v1/jobs", headers=headers).status_code == 200
        heard = crowd[-1].recv(100)
        assert heard.startswith(b"HTTP/1.1 401 ")
        for each in crowd:
            each.close()
        assert httpx.get(f"{where}/api/v1/jobs", headers=headers).status_code == 200
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert len(err) < 100_000
    assert "Too many open files" not in err
