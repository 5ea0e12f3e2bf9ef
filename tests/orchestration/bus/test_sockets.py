"""The directory of sockets: long paths, links and files that were planted, processes that died."""

# ruff: noqa: ASYNC240 (a test may look at its files)

from __future__ import annotations

import logging
import os
import socket
import stat
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from aaiclick.orchestration.bus import open_bus, sockets
from aaiclick.orchestration.bus.local import Room
from aaiclick.orchestration.bus.sockets import SocketBus
from aaiclick.orchestration.rules.naming.hints import ENDED, ORDERS, READY
from aaiclick.urls import sqlite_url
from tests.support.telling import hearer

WAIT_S_MAX = 60.0
SILENCE_S = 0.1
PLANTED = "77-0123abcd.sock"

Opens = Callable[[Path], SocketBus]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "local.db"


@pytest.fixture
def wake(file: Path) -> Path:
    return file.with_name("local.db.wake")


@pytest.fixture
async def opened() -> AsyncIterator[Opens]:
    """Makes buses that hear each other through the sockets only, as if each were in a process of its own."""
    async with AsyncExitStack() as stack:

        def make(file: Path) -> SocketBus:
            bus = open_bus(sqlite_url(file))
            assert isinstance(bus, SocketBus)
            bus._room = Room()
            stack.push_async_callback(bus.close)
            return bus

        yield make


async def listening(bus: SocketBus) -> SocketBus:
    await bus.listen()
    return bus


async def test_who_only_tells_makes_nothing(file: Path, wake: Path, opened: Opens) -> None:
    opened(file).tell([READY])
    assert not wake.exists()


async def test_the_directory_is_for_its_owner_only(file: Path, wake: Path, opened: Opens) -> None:
    before = os.umask(0)
    try:
        await listening(opened(file))
    finally:
        os.umask(before)
    assert stat.S_IMODE(wake.stat().st_mode) == 0o700


async def test_a_socket_is_removed_on_close(file: Path, wake: Path, opened: Opens) -> None:
    one, two = await listening(opened(file)), await listening(opened(file))
    assert len(os.listdir(wake)) == 2
    await one.close()
    assert os.listdir(wake) == [two._name]
    await two.close()
    assert os.listdir(wake) == []


async def test_the_names_tell_whose_they_are(file: Path, opened: Opens) -> None:
    assert (await listening(opened(file)))._name.startswith(f"{os.getpid()}-")


async def test_what_a_dead_process_left_is_removed(file: Path, wake: Path, opened: Opens) -> None:
    async with hearer(sqlite_url(file)) as other:
        other.process.kill()
        await other.process.wait()
    assert len(os.listdir(wake)) == 1
    listener = await listening(opened(file))
    opened(file).tell([READY])
    assert await listener.wait(WAIT_S_MAX) == {READY}
    assert os.listdir(wake) == [listener._name]


async def test_a_path_that_is_longer_than_an_address_of_a_socket(tmp_path: Path, opened: Opens) -> None:
    deep = tmp_path / ("d" * 100) / ("é" * 100)
    deep.mkdir(parents=True)
    listener = await listening(opened(deep / "local.db"))
    opened(deep / "local.db").tell([ENDED])
    assert await listener.wait(WAIT_S_MAX) == {ENDED}


async def test_without_proc_the_path_itself_is_used(opened: Opens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "DIRECTORY_OF_DESCRIPTORS", Path("/nowhere"))
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        listener = await listening(opened(Path(short, "local.db")))
        opened(Path(short, "local.db")).tell([READY])
        assert await listener.wait(WAIT_S_MAX) == {READY}


async def test_without_proc_a_long_path_stays_local_and_says_so_once(
    tmp_path: Path, opened: Opens, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sockets, "DIRECTORY_OF_DESCRIPTORS", Path("/nowhere"))
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    listener = await listening(opened(deep / "local.db"))
    await listener.listen()
    listener.tell([READY])
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "too long" in caplog.text
    await listener.close()


async def test_a_planted_file_is_left_alone(file: Path, wake: Path, opened: Opens) -> None:
    listener = await listening(opened(file))
    (wake / PLANTED).write_text("mine")
    (wake / "notes.txt").write_text("mine too")
    opened(file).tell([READY])
    assert await listener.wait(WAIT_S_MAX) == {READY}
    assert (wake / PLANTED).read_text() == "mine"
    assert (wake / "notes.txt").read_text() == "mine too"


async def test_a_planted_link_is_not_followed(
    file: Path, wake: Path, tmp_path: Path, opened: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = await listening(opened(file))
    monkeypatch.chdir(tmp_path)  # a short address, however long the path
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as elsewhere:
        elsewhere.bind("elsewhere")
        elsewhere.setblocking(False)
        (wake / PLANTED).symlink_to(tmp_path / "elsewhere")
        opened(file).tell([READY])
        assert await listener.wait(WAIT_S_MAX) == {READY}
        with pytest.raises(BlockingIOError):
            elsewhere.recv(100)
    assert (wake / PLANTED).is_symlink()


async def test_a_socket_of_someone_elses_is_left_alone(
    file: Path, wake: Path, opened: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only names like ours: what another program keeps there may well refuse us."""
    listener = await listening(opened(file))
    monkeypatch.chdir(wake)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind("other")
    opened(file).tell([READY])
    assert await listener.wait(WAIT_S_MAX) == {READY}
    assert (wake / "other").is_socket()


@pytest.mark.parametrize("make", ["link", "file", "open to all"])
async def test_a_directory_that_is_not_ours_alone_is_not_used(
    make: str, file: Path, wake: Path, tmp_path: Path, opened: Opens, caplog: pytest.LogCaptureFixture
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    if make == "link":
        wake.symlink_to(elsewhere)
    elif make == "file":
        wake.write_text("mine")
    else:
        wake.mkdir()
        wake.chmod(0o777)
    listener = await listening(opened(file))
    listener.tell([READY])
    listener.tell([ORDERS])
    await listener.flush()
    await listener.close()
    assert len(caplog.records) == 2, "of hearing, and of telling"
    assert os.listdir(elsewhere) == []
    assert wake.is_file() or os.listdir(wake) == []


async def test_a_database_reached_through_a_link_is_the_same(file: Path, tmp_path: Path, opened: Opens) -> None:
    file.touch()
    (tmp_path / "link.db").symlink_to(file)
    listener = await listening(opened(file))
    opened(tmp_path / "link.db").tell([READY])
    assert await listener.wait(WAIT_S_MAX) == {READY}


async def test_a_directory_that_cannot_be_made_is_said_once(
    tmp_path: Path, opened: Opens, caplog: pytest.LogCaptureFixture
) -> None:
    bus = await listening(opened(tmp_path / "missing" / "local.db"))
    await bus.listen()
    bus.tell([READY])
    assert len(caplog.records) == 1


async def test_who_reads_nothing_holds_nobody_up(file: Path, wake: Path, opened: Opens) -> None:
    """A full queue of messages loses the next; whoever finds a message looks anyway."""
    listener, teller = await listening(opened(file)), opened(file)
    assert listener._socket is not None
    listener._loop.remove_reader(listener._socket)
    for _ in range(2000):
        teller.tell([READY])
        await teller.flush()
    listener._read()
    assert await listener.wait(0) == {READY}
    assert os.listdir(wake) == [listener._name]


@pytest.mark.parametrize("message", [b"", b"\xff\xfe", b"x" * 60_000, b"token gossip"])
async def test_a_message_that_is_not_understood_is_ignored(
    message: bytes, file: Path, wake: Path, opened: Opens
) -> None:
    listener = await listening(opened(file))
    sockets._send_to_all(wake, message, but="")
    opened(file).tell([READY])
    assert await listener.wait(WAIT_S_MAX) == {READY}
    assert await listener.wait(SILENCE_S) == frozenset()


async def test_two_other_processes_hear(file: Path, wake: Path, opened: Opens) -> None:
    teller = opened(file)
    async with hearer(sqlite_url(file)) as one, hearer(sqlite_url(file)) as two:
        teller.tell([ORDERS, READY])
        assert await one.heard() == await two.heard() == {ORDERS, READY}
        assert await one.process.wait() == await two.process.wait() == 0
    assert os.listdir(wake) == []
