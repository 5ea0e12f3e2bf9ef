"""What every log store does: the same suite for a directory, a shared directory, and a real S3 server."""

from __future__ import annotations

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import obstore
import pytest

from aaiclick.config import reset_settings
from aaiclick.errors import MissingExtra
from aaiclick.orchestration.log_stores.contract import LogPart, LogStore
from aaiclick.orchestration.log_stores.directory import LocalDirectory
from aaiclick.orchestration.log_stores.objects import ObjectStore
from aaiclick.orchestration.log_stores.opening import is_local_directory, log_store
from aaiclick.orchestration.log_stores.shared_directory import SharedDirectory

TASK = 7_300_000_000_000_000_001
_prefixes = count(1)


@pytest.fixture(params=["local", "shared", "s3"])
def server(request: pytest.FixtureRequest) -> str:
    """The kind of the store; `s3` needs the server of that name."""
    return str(request.param)


@pytest.fixture
def stores(
    request: pytest.FixtureRequest, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[LogStore, LogStore]:
    """Two stores on the same place, as two machines have them."""
    if server == "local":
        return LocalDirectory(tmp_path / "logs"), LocalDirectory(tmp_path / "logs")
    if server == "shared":
        return SharedDirectory(tmp_path / "logs"), SharedDirectory(tmp_path / "logs")
    for name, value in request.getfixturevalue("s3_server").items():
        monkeypatch.setenv(name, value)
    prefix = f"test/{os.getpid()}/{next(_prefixes)}"
    return ObjectStore("logs", prefix), ObjectStore("logs", prefix)


@pytest.fixture
def store(stores: tuple[LogStore, LogStore]) -> LogStore:
    return stores[0]


def whole(store: LogStore, task: int = TASK, epoch: int | None = None) -> bytes:
    """A log, read in small parts."""
    found = b""
    while (part := store.read(task, epoch, offset=len(found), limit=3)) is not None and part.data:
        found += part.data
    return found


def there(part: LogPart | None) -> LogPart:
    assert part is not None
    return part


def test_pieces_in_their_order_make_a_log(store: LogStore) -> None:
    assert store.read(TASK, 1) is None
    assert store.read(TASK) is None
    assert store.write(TASK, 1, 0, b"one\n") == 4
    assert there(store.read(TASK, 1))[:2] == (b"one\n", 4)
    assert not there(store.read(TASK, 1)).complete
    assert store.write(TASK, 1, 4, b"two\n") == 8
    assert store.write(TASK, 1, 8, b"three", last=True) == 13
    assert there(store.read(TASK, 1)) == there(store.read(TASK))
    assert whole(store) == b"one\ntwo\nthree"
    assert there(store.read(TASK)).complete


def test_parts_of_a_log(store: LogStore) -> None:
    store.write(TASK, 2, 0, b"01234")
    store.write(TASK, 2, 5, b"56789")
    assert there(store.read(TASK, 2, offset=3, limit=4))[:2] == (b"3456", 10)
    assert there(store.read(TASK, 2, offset=-2))[:2] == (b"89", 10)
    assert there(store.read(TASK, 2, offset=-99))[:2] == (b"0123456789", 10)
    assert there(store.read(TASK, 2, offset=99))[:2] == (b"", 10)
    assert store.read(TASK, 1) is None
    assert store.read(TASK + 1) is None


def test_what_is_repeated_changes_nothing(stores: tuple[LogStore, LogStore]) -> None:
    """Its answer was lost, and the piece is sent again, perhaps to another server, and with more behind it."""
    one, other = stores
    assert one.write(TASK, 1, 0, b"abc") == 3
    assert one.write(TASK, 1, 0, b"abc") == 3
    assert other.write(TASK, 1, 0, b"abcdef") == 6
    assert one.write(TASK, 1, 0, b"ab") in (3, 6)  # it may know only what it wrote itself
    assert one.write(TASK, 1, 3, b"defghi", last=True) in (6, 9)
    assert one.write(TASK, 1, 6, b"ghi", last=True) == 9
    assert other.write(TASK, 1, 6, b"ghi", last=True) == 9
    assert whole(one) == whole(other) == b"abcdefghi"
    assert there(other.read(TASK)).complete


def test_a_gap_is_not_filled_with_what_follows(store: LogStore) -> None:
    assert store.write(TASK, 1, 0, b"abc") == 3
    assert store.write(TASK, 1, 6, b"ghi", last=True) == 3
    assert there(store.read(TASK))[:2] == (b"abc", 3)
    assert not there(store.read(TASK)).complete


def test_the_newest_attempt_stays_the_newest(store: LogStore) -> None:
    """What arrives late of an earlier attempt is added to that one's log alone."""
    store.write(TASK, 1, 0, b"first, ")
    store.write(TASK, 3, 0, b"second", last=True)
    store.write(TASK, 1, 7, b"late", last=True)
    store.write(TASK, 2, 0, b"never seen before", last=True)
    assert whole(store) == b"second"
    assert whole(store, epoch=1) == b"first, late"
    assert whole(store, epoch=2) == b"never seen before"
    assert there(store.read(TASK, 1)).file != there(store.read(TASK)).file
    store.write(TASK, 10, 0, b"tenth")
    assert whole(store) == b"tenth"


def test_an_empty_log_is_complete_too(store: LogStore) -> None:
    assert store.write(TASK, 1, 0, b"", last=True) == 0
    assert there(store.read(TASK, 1))[:2] == (b"", 0)
    assert there(store.read(TASK, 1)).complete


def test_a_reader_sees_a_beginning_of_the_log_at_any_time(stores: tuple[LogStore, LogStore]) -> None:
    """Also while its pieces are joined at the end."""
    writer, reader = stores
    text = b"".join(b"%d\n" % number for number in range(200))
    pieces = [text[at : at + 40] for at in range(0, len(text), 40)]
    written = threading.Event()
    wrong: list[LogPart] = []

    def read() -> None:
        while not written.is_set():
            part = reader.read(TASK, 1)
            if part is not None and (not text.startswith(part.data) or (part.complete and part.data != text)):
                wrong.append(part)

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        try:
            for at, piece in enumerate(pieces):
                writer.write(TASK, 1, at * 40, piece, last=at == len(pieces) - 1)
        finally:
            written.set()
        reading.result()
    assert not wrong
    assert whole(reader) == text


def test_two_that_send_the_same_log_at_once(stores: tuple[LogStore, LogStore]) -> None:
    """As when a worker believes its connection lost and tries another server. The pieces need not be the same."""
    text = b"".join(b"%d\n" % number for number in range(300))

    def send(store: LogStore, size: int) -> None:
        at = 0
        while at < len(text) or not there(store.read(TASK, 1)).complete:
            piece = text[at : at + size]
            at = min(store.write(TASK, 1, at, piece, last=at + len(piece) == len(text)), len(text))

    with ThreadPoolExecutor(2) as pool:
        for sent in [pool.submit(send, store, size) for store, size in zip(stores, (61, 97), strict=True)]:
            sent.result()
    assert there(stores[0].read(TASK, 1))[:2] == (text, len(text))


def test_the_logs_of_some_runs_go_and_no_others(store: LogStore) -> None:
    for task, epoch in ((TASK, 1), (TASK, 2), (TASK, 10), (TASK + 1, 1)):
        store.write(task, epoch, 0, b"x", last=True)
    assert store.remove_runs([TASK], [(TASK, 1), (TASK, 9)]).trouble is None
    assert store.read(TASK, 1) is None
    assert whole(store, epoch=10) == whole(store, epoch=2) == whole(store, TASK + 1) == b"x"
    names = {name for name in store.names_of([TASK]) if name.count(".") == 2}
    assert names == {f"{TASK}.2.log", f"{TASK}.10.log"}
    assert store.names_of([]) == set()
    assert store.remove([f"{TASK}.2.log", f"{TASK}.9.log", "notes.txt"]).files == 1
    assert store.read(TASK, 2) is None


def test_old_are_those_that_nobody_writes_to(store: LogStore) -> None:
    for epoch in (1, 2):
        store.write(TASK, epoch, 0, b"x")
        store.write(TASK, epoch, 1, b"y")
    listed = [name for some in store.old(time.time() + 3600) for name, task in some.items() if task == TASK]
    assert {f"{TASK}.1.log", f"{TASK}.2.log"} <= set(listed)
    assert list(store.old(time.time() - 3600)) == []


def test_where_nothing_is_nothing_goes(store: LogStore) -> None:
    assert list(store.old(time.time() + 3600)) == []
    assert store.remove_runs([TASK], [(TASK, 1)]) == (0, None)
    assert store.names_of([TASK]) == set()


def test_its_place_is_named(store: LogStore) -> None:
    assert str(TASK) in store.place_of(TASK, 3)


# ---------------------------------------------------------------- what only some have


@pytest.mark.parametrize("server", ["local", "shared"], indirect=True)
def test_no_link_is_followed(store: LogStore, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hush")
    planted = Path(store.place_of(TASK, 1))
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.symlink_to(secret)
    assert store.read(TASK, 1) is None
    with pytest.raises(OSError, match=str(planted)):
        store.write(TASK, 1, 0, b"over")
    assert secret.read_text() == "hush"


@pytest.fixture
def joining(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes each object that is put."""
    puts: list[str] = []
    put = obstore.put

    def noted(store: Any, path: str, *args: Any, **kwargs: Any) -> Any:
        puts.append(path)
        return put(store, path, *args, **kwargs)

    monkeypatch.setattr(obstore, "put", noted)
    return puts


@pytest.mark.parametrize("server", ["s3"], indirect=True)
def test_a_complete_log_is_one_object(store: ObjectStore, joining: list[str]) -> None:
    for at in range(5):
        store.write(TASK, 1, at, b"x", last=at == 4)
    assert len(joining) == 7  # five pieces, the whole, the mark
    assert sorted(path for path, _ in store._objects(f"{TASK}/1/")) == [f"{TASK}/1/{0:019d}", f"{TASK}/1/end"]
    assert whole(store) == b"xxxxx"


@pytest.mark.parametrize("server", ["s3"], indirect=True)
def test_a_log_that_was_joined_in_part_is_read_as_before(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The joining process ended between any two of its steps."""
    with monkeypatch.context() as crash:
        crash.setattr(obstore, "delete", lambda *_: None)
        for at in range(5):
            store.write(TASK, 1, at, b"x", last=at == 4)
    assert there(store.read(TASK, 1))[:2] == (b"xxxxx", 5)
    assert store.write(TASK, 1, 4, b"x", last=True) == 5


@pytest.mark.parametrize("server", ["s3"], indirect=True)
def test_a_store_that_does_not_answer_is_an_os_error(
    stores: tuple[LogStore, LogStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    gone = ObjectStore("logs", "x")
    with pytest.raises(OSError, match="object store"):
        gone.write(TASK, 1, 0, b"x")
    with pytest.raises(OSError, match="object store"):
        gone.read(TASK, 1)
    assert gone.remove_runs([TASK], [(TASK, 1)]).trouble is not None


# ---------------------------------------------------------------- which one it is


def test_the_settings_name_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_LOG_DIR", str(tmp_path / "logs"))
    reset_settings()
    assert isinstance(log_store(), LocalDirectory)
    assert is_local_directory()
    for value, kind in ((str(tmp_path / "shared"), SharedDirectory), ("s3://some-logs/of/us/", ObjectStore)):
        monkeypatch.setenv("AAICLICK_LOG_STORE", value)
        reset_settings()
        store = log_store()
        assert isinstance(store, kind)
        assert not is_local_directory()
        assert store is log_store()
        assert store.place_of(1, 2).startswith(value)


def test_a_bucket_needs_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_LOG_STORE", "s3://other-logs")
    monkeypatch.setitem(sys.modules, "aaiclick.orchestration.log_stores.objects", None)
    reset_settings()
    with pytest.raises(MissingExtra, match=r"aaiclick\[s3\]"):
        log_store()
