"""Owning a directory and serving it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from aaiclick.data.gateway import serve_directory
from aaiclick.data.ownership import acquire, find_gateway
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
