"""HTTP over a socket file: what tells that a request was not taken."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aaiclick.data.clients.client_errors import in_our_words, is_unsent
from aaiclick.data.clients.unix_socket import pool_of
from aaiclick.errors import DataUnreachable


@contextmanager
def listening(file: Path, serve: Callable[[socket.socket], None]) -> Iterator[None]:
    """A server that takes one client."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(file))
        server.listen()

        def take() -> None:
            client, _ = server.accept()
            with client:
                serve(client)

        thread = threading.Thread(target=take)
        thread.start()
        yield
        thread.join()


def ask(file: Path, body: bytes = b"SELECT 1") -> None:
    with in_our_words():
        pool_of(file).request("POST", "http://localhost/", body=body)


def read_everything(client: socket.socket) -> None:
    while not client.recv(65536).endswith(b"SELECT 1"):
        continue


@pytest.mark.parametrize("body", [b"SELECT 1", b"x" * 10_000_000])
def test_who_closes_before_everything_was_read_has_not_taken_it(tmp_path: Path, body: bytes) -> None:
    with listening(tmp_path / "s", lambda client: None), pytest.raises(DataUnreachable) as found:
        ask(tmp_path / "s", body)
    assert is_unsent(found.value)


def test_who_closes_after_everything_was_read_may_have_done_it(tmp_path: Path) -> None:
    with listening(tmp_path / "s", read_everything), pytest.raises(DataUnreachable) as found:
        ask(tmp_path / "s")
    assert not is_unsent(found.value)


def test_where_nobody_listens_nothing_was_sent(tmp_path: Path) -> None:
    with pytest.raises(DataUnreachable) as found:
        ask(tmp_path / "s")
    assert is_unsent(found.value)
