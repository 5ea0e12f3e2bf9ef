"""Logs on their way: while they are written, after cuts and lost answers, and what a report waits for."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from aaiclick.config import reset_settings
from aaiclick.errors import InputError, NotAllowed
from aaiclick.orchestration.execution.logs import shipping as module
from aaiclick.orchestration.execution.logs.log_reading import read_log
from aaiclick.orchestration.execution.logs.log_targets import LOG_PIECE_BYTES_MAX, StoreTarget
from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.execution.logs.shipping import FOLDER, arrived, begin_shipment, sent, shipping
from aaiclick.orchestration.execution.logs.spool import LEFT, Shipment
from aaiclick.orchestration.log_stores.directory import LocalDirectory
from aaiclick.orchestration.log_stores.shared_directory import SharedDirectory
from aaiclick.orchestration.models import Done
from aaiclick.telemetry import masks
from tests.support.bodies import claim_of
from tests.support.fleet import eventually


class Road(StoreTarget):
    """The way to a directory, on which a test may stop, lose or refuse pieces."""

    def __init__(self, directory: Path) -> None:
        super().__init__(LocalDirectory(directory))
        self.pieces: list[tuple[int, int, bool]] = []
        self.before: Callable[[int, bytes], None] = lambda offset, data: None
        self.after: Callable[[int, bytes], None] = lambda offset, data: None

    async def write(self, shipment: Shipment, offset: int, data: bytes, *, last: bool) -> int:
        self.before(offset, data)
        self.pieces.append((offset, len(data), last))
        size = await super().write(shipment, offset, data, last=last)
        self.after(offset, data)
        return size


@pytest.fixture
def road(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Road:
    monkeypatch.setenv("AAICLICK_LOG_DIR", str(tmp_path / "node"))
    monkeypatch.setattr(module, "EVERY_S", 0.005)
    reset_settings()
    return Road(tmp_path / "server")


@asynccontextmanager
async def sending(road: Road) -> AsyncIterator[None]:
    async with shipping(lambda: road):
        yield


def opened(task: int = 5, epoch: int = 1) -> RunLog:
    claim = replace(claim_of("a.b"), task_id=task, epoch=epoch)
    return RunLog(task, epoch, begin_shipment(claim))


def text_of(road: Road, task: int = 5, epoch: int = 1) -> tuple[bytes, bool]:
    part = road.store.read(task, epoch)
    return (b"", False) if part is None else (part.data, part.complete)


async def seen(road: Road, text: bytes, *, complete: bool) -> None:
    await eventually(lambda: text_of(road) == (text, complete), lambda: f"{text_of(road)}, {road.pieces}")


def left(tmp_path: Path) -> list[str]:
    return [file.name for file in (tmp_path / "node" / FOLDER).glob("*/*.log")]


async def test_a_log_is_sent_while_it_is_written(road: Road, tmp_path: Path) -> None:
    async with sending(road):
        log = opened()
        log.write(b"one\n")
        await seen(road, b"one\n", complete=False)
        log.write(b"two\n")
        await seen(road, b"one\ntwo\n", complete=False)
        log.close()
        assert await placed(log) == road.store.place_of(5, 1)
        assert text_of(road) == (b"one\ntwo\n", True)
        assert left(tmp_path) == []
    assert list((tmp_path / "node" / FOLDER).iterdir()) == []


async def test_a_large_log_goes_in_pieces(road: Road) -> None:
    text = os.urandom(3 * LOG_PIECE_BYTES_MAX + 10)
    async with sending(road):
        log = opened()
        log.write(text)
        log.close()
        await placed(log)
    assert text_of(road) == (text, True)
    assert max(size for _, size, _ in road.pieces) == LOG_PIECE_BYTES_MAX
    assert [last for _, _, last in road.pieces].count(True) == 1


async def test_an_answer_that_is_lost_doubles_nothing(road: Road) -> None:
    lost: list[int] = []

    def lose(offset: int, data: bytes) -> None:
        if offset not in lost:
            lost.append(offset)
            raise OSError("the answer is lost")

    road.after = lose
    text = os.urandom(2 * LOG_PIECE_BYTES_MAX)
    async with sending(road):
        log = opened()
        log.write(text)
        log.close()
        assert await arrived(begun(log))
    assert text_of(road) == (text, True)
    assert len(lost) == 2


def begun(log: RunLog) -> Shipment:
    assert log.shipment is not None
    return log.shipment


async def placed(log: RunLog) -> str | None:
    """Where a report says that the log is."""
    return (await sent(log, Done(5, 1))).log_path


def test_pieces_are_as_large_as_a_server_takes() -> None:
    assert module.PIECE_BYTES_MAX == LOG_PIECE_BYTES_MAX


async def test_after_a_cut_it_goes_on_where_it_was(road: Road) -> None:
    cut = threading.Event()

    def refuse(offset: int, data: bytes) -> None:
        if cut.is_set():
            raise OSError("cut off")

    road.before = refuse
    async with sending(road):
        log = opened()
        log.write(b"before, ")
        await seen(road, b"before, ", complete=False)
        cut.set()
        log.write(b"meanwhile, ")
        log.write(b"and ")
        cut.clear()
        log.write(b"after")
        log.close()
        assert await arrived(begun(log))
    assert text_of(road) == (b"before, meanwhile, and after", True)


async def test_a_receiver_that_lost_some_gets_it_again(road: Road, tmp_path: Path) -> None:
    async with sending(road):
        log = opened()
        log.write(b"abcdef")
        await seen(road, b"abcdef", complete=False)
        os.truncate(road.store.place_of(5, 1), 2)
        log.write(b"ghi")
        log.close()
        assert await arrived(begun(log))
    assert text_of(road) == (b"abcdefghi", True)


async def test_a_report_does_not_wait_for_ever(
    road: Road, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log is on the disk, and the reader is told that the rest is missing; the next worker sends it."""
    monkeypatch.setattr(module, "WAIT_S", 0.01)
    monkeypatch.setattr(module, "GOODBYE_S", 0.01)
    cut = threading.Event()

    def refuse(offset: int, data: bytes) -> None:
        if cut.is_set():
            raise OSError("cut off")

    road.before = refuse
    async with sending(road):
        log = opened()
        log.write(b"before, ")
        await seen(road, b"before, ", complete=False)
        cut.set()
        log.write(b"the rest")
        log.close()
        assert await placed(log) == road.store.place_of(5, 1)
        assert not await arrived(begun(log))
    assert text_of(road) == (b"before, ", False)
    assert len(left(tmp_path)) == 1
    assert "1 logs were not sent" in caplog.text
    cut.clear()
    async with sending(road):
        await seen(road, b"before, the rest" + LEFT, complete=True)
    assert left(tmp_path) == []


@pytest.mark.parametrize("error", [NotAllowed(what="This", cause="not yours", hint=""), InputError])
async def test_a_log_that_is_refused_is_dropped_and_says_so(road: Road, tmp_path: Path, error: object) -> None:
    raised = error if isinstance(error, NotAllowed) else InputError(field="offset", value=1, rule="full", hint="")
    more: list[int] = []

    def refuse(offset: int, data: bytes) -> None:
        if b"more" in data:
            more.append(offset)
            raise raised

    road.before = refuse
    async with sending(road):
        log = opened()
        log.write(b"before")
        await seen(road, b"before", complete=False)
        log.write(b"more")
        log.close()
        assert not await arrived(begun(log))
        assert left(tmp_path) == []
    text, complete = text_of(road)
    assert text.startswith(b"before\n[aaiclick] 4 bytes are missing here: the server refused them")
    assert complete
    assert more == [6]


async def test_secret_values_are_masked_before_they_leave(road: Road, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks, "_known", None)
    masks.remember(["tr0ub4dor"])
    async with sending(road):
        log = opened()
        log.write(b"it is tr0ub")
        log.write(b"4dor.")
        log.close()
        assert await arrived(begun(log))
    assert text_of(road) == (b"it is ***.", True)


async def test_many_logs_at_once(road: Road, tmp_path: Path) -> None:
    async with sending(road):
        logs = [opened(task) for task in range(1, 60)]
        for number, log in enumerate(logs):
            log.write(b"%d" % number)
            log.close()
        await asyncio.gather(*(placed(log) for log in logs))
        for number, task in enumerate(range(1, 60)):
            assert text_of(road, task) == (b"%d" % number, True)


async def test_logs_that_stay_here_are_not_sent(road: Road, tmp_path: Path) -> None:
    async with shipping(None):
        assert begin_shipment(claim_of("a.b")) is None
    assert not (tmp_path / "node").exists()


async def test_a_store_of_the_settings_is_read_again(
    road: Road, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AAICLICK_LOG_STORE", str(tmp_path / "shared"))
    reset_settings()
    async with shipping(lambda: StoreTarget(SharedDirectory(tmp_path / "shared"))):
        log = opened()
        log.write(b"hello")
        log.close()
        await placed(log)
    part = read_log(5)
    assert part is not None
    assert (part.data, part.complete) == (b"hello", True)
