"""Owning a directory and serving it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from aaiclick.config import reset_settings
from aaiclick.data.engine import Engine
from aaiclick.data.gateway import serve_directory
from aaiclick.data.gateway import serving as serving_module
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
