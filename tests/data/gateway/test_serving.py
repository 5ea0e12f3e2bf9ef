"""Owning a directory and serving it."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from aaiclick.config import reset_settings
from aaiclick.data.embedded.directory_lock import acquire, find_gateway
from aaiclick.data.embedded.engine import Engine
from aaiclick.data.gateway import Serving, serve_directory
from aaiclick.data.gateway import serving as serving_module
from aaiclick.errors import EngineUnavailable


def test_a_directory_is_owned_and_served_until_it_is_closed(tmp_path: Path) -> None:
    serving = serve_directory(tmp_path / "data")
    assert serving is not None
    assert find_gateway(tmp_path / "data", 0) == serving.endpoint
    assert serving.endpoint.url == serving.gateway.url
    assert serve_directory(tmp_path / "data") is None
    serving.close()
    assert find_gateway(tmp_path / "data", 0) is None
    again = serve_directory(tmp_path / "data")
    assert again is not None
    assert again.endpoint.password != serving.endpoint.password
    again.close()


def test_what_cannot_be_served_is_not_owned_either(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        serve_directory(tmp_path / "data", port=taken.getsockname()[1])
    with pytest.raises(EngineUnavailable):
        serve_directory(tmp_path / "why?")
    for place in ("data", "why?"):
        owned = acquire(tmp_path / place)
        assert owned is not None
        owned.release()


def test_the_setting_limits_its_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int | None] = []

    class Noted(Engine):
        @classmethod
        def open(cls, directory: Path, **limits: int | None) -> Engine:
            given.append(limits["memory_bytes_max"])
            return super().open(directory)

    monkeypatch.setattr(serving_module, "Engine", Noted)
    for text, more in (("500", {}), ("0", {}), ("500", {"memory_bytes_max": 7})):
        monkeypatch.setenv("AAICLICK_ENGINE_MEMORY_MB", text)
        reset_settings()
        serving = serve_directory(tmp_path / "data", **more)
        assert serving is not None
        serving.close()
    assert given == [500_000_000, None, 7]
    monkeypatch.undo()
    reset_settings()


def answer_of(serving: Serving, sql: str, *, on_port: bool) -> str:
    """What is answered on the port, or on the socket file."""
    password = serving.endpoint.password
    login = f"X-ClickHouse-User: {serving.endpoint.user}\r\nX-ClickHouse-Key: {password}\r\nConnection: close"
    where = urlsplit(serving.endpoint.tcp)
    client = socket.socket(socket.AF_INET if on_port else socket.AF_UNIX)
    with client, client.makefile("rb") as reader:
        client.connect((where.hostname, where.port) if on_port else str(serving.endpoint.socket))
        client.sendall(f"POST / HTTP/1.1\r\n{login}\r\nContent-Length: {len(sql)}\r\n\r\n{sql}".encode())
        return reader.read().partition(b"\r\n\r\n")[2].decode()


def test_files_are_for_the_socket_and_for_the_port_where_that_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text("7\n")
    sql = f"SELECT * FROM file('{tmp_path / 'a.csv'}', 'CSV')"
    for text, on_port in (("0", "Code: 497."), ("1", "7\n")):
        monkeypatch.setenv("AAICLICK_GATEWAY_FILES", text)
        reset_settings()
        serving = serve_directory(tmp_path / "data", port=0)
        assert serving is not None
        assert answer_of(serving, sql, on_port=True).startswith(on_port)
        assert answer_of(serving, sql, on_port=False) == "7\n"
        serving.close()
    monkeypatch.undo()
    reset_settings()
