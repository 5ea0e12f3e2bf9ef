"""Where a gateway listens: on a socket of this user alone, however long its path would be."""

from __future__ import annotations

import socket
import stat
import tempfile
from pathlib import Path

import pytest

from aaiclick.data import Context, data_context
from aaiclick.data.clients.opening import _borrow
from aaiclick.data.embedded.directory_lock import SOCKET_PLACE_PREFIX, Endpoint, acquire
from aaiclick.data.gateway import serve_directory
from aaiclick.data.gateway.http import sockets
from aaiclick.data.tables.lifetimes import Lifetime
from aaiclick.errors import DataUnreachable


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


async def test_it_is_reached_by_its_user_alone_and_not_over_tcp(tmp_path: Path) -> None:
    serving = serve_directory(tmp_path / "data")
    assert serving is not None
    endpoint = serving.endpoint
    try:
        assert endpoint.socket == tmp_path / "data.run" / "gateway.sock"
        assert (mode_of(endpoint.socket), mode_of(endpoint.socket.parent)) == (0o600, 0o700)
        assert endpoint.tcp == ""
        client = _borrow(endpoint)
        assert (await client.rows("SELECT 1 + 1")).columns == [[2]]
        await client.close()
    finally:
        serving.close()
    assert not (tmp_path / "data.run").exists()
    gone = _borrow(endpoint)
    with pytest.raises(DataUnreachable):
        await gone.rows("SELECT 1")
    await gone.close()


def test_a_path_that_is_too_long_is_taken_among_temporary_files_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = Path(tempfile.gettempdir())
    while len(str(short)) > 50:  # the tests' own may be long
        short = short.parent
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    directory = tmp_path / ("long" * 20) / ("longer" * 8)
    for _ in range(2):
        serving = serve_directory(directory)
        assert serving is not None
        file = serving.endpoint.socket
        assert file is not None
        assert not file.is_relative_to(tmp_path)
        assert mode_of(file.parent) == 0o700
        serving.close()
        assert not file.parent.exists()


def test_what_an_owner_that_died_left_among_temporary_files_is_removed(tmp_path: Path) -> None:
    listener = sockets._listen_at(Path(tempfile.mkdtemp(prefix=SOCKET_PLACE_PREFIX)) / sockets.FILE)
    endpoint = Endpoint(listener.url, "default", "s", 1)
    file = endpoint.socket
    assert file is not None
    listener.socket.close()
    with acquire(tmp_path / "data") as owned:  # type: ignore[union-attr]
        owned.publish(endpoint)
        (tmp_path / "data.gateway").rename(tmp_path / "kept")
    (tmp_path / "kept").rename(tmp_path / "data.gateway")
    assert file.exists()
    with acquire(tmp_path / "data"):  # type: ignore[union-attr]
        assert not file.parent.exists()


def test_a_place_that_is_not_ours_alone_is_closed_and_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "open.run").mkdir()
    (tmp_path / "open.run").chmod(0o755)
    listener = sockets.listen_in_private(tmp_path / "open")
    assert listener is not None
    assert mode_of(tmp_path / "open.run") == 0o700
    listener.close()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "linked.run").symlink_to(tmp_path / "elsewhere")
    listener = sockets.listen_in_private(tmp_path / "linked")
    assert listener is not None
    assert list((tmp_path / "elsewhere").iterdir()) == []
    listener.close()


async def test_without_such_sockets_it_is_a_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")
    assert sockets.listen_in_private(tmp_path / "data") is None


async def test_a_port_is_served_beside_it_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving = serve_directory(tmp_path / "data", port=0)
    assert serving is not None
    where = serving.endpoint
    try:
        assert where.url.startswith("unix://")
        address = f"clickhouse://{where.user}:{where.password}@{where.tcp.removeprefix('http://')}/default"
        async with data_context(url=address) as context:
            assert (await context.client.rows("SELECT 3")).columns == [[3]]
    finally:
        serving.close()


async def test_a_file_is_read_into_fields_over_it(tmp_path: Path) -> None:
    """All that is said with settings comes through HTTP, too."""
    (tmp_path / "x.csv").write_text("a;b\n1;x\n2\n300;y\n")
    serving = serve_directory(tmp_path / "data")
    assert serving is not None
    client = _borrow(serving.endpoint)
    context = Context(client, Lifetime(client, tmp_path / "contexts"))
    try:
        made = await context.create_object_from_file(
            tmp_path / "x.csv",
            fields={"a": "Int8", "b": "Nullable(String)"},
            options={"delimiter": ";"},
            on_error="collect",
        )
        assert await made.data() == {"a": [1], "b": ["x"]}
        assert made.rejected is not None
        assert (await made.rejected.data())["row"] == [2, 3]
    finally:
        await context.end()
        await client.close()
        serving.close()
