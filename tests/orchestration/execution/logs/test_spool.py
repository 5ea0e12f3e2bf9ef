"""Logs on the disk until they are sent: whose they are, how many fit, and what happens to those that are left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aaiclick.orchestration.execution.logs.run_logs import TAIL_BYTES, RunLog
from aaiclick.orchestration.execution.logs.spool import LEFT, Shipment, Spool


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "spool"


def written(spool: Spool, data: bytes, task: int = 5) -> Shipment:
    shipment = spool.begin(task, 2, 77)
    log = RunLog(task, 2, shipment)
    log.write(data)
    log.close()
    return shipment


def test_a_log_is_written_to_the_spool_and_nowhere_else(place: Path, tmp_path: Path) -> None:
    spool = Spool(place, 1000)
    shipment = written(spool, b"hello")
    assert (shipment.size, shipment.sent, shipment.ended) == (5, 0, True)
    assert shipment.piece(3) == b"hel"
    assert Path(shipment.path).parent == spool.directory
    assert [path.name for path in tmp_path.iterdir()] == ["spool"]


def test_an_empty_log_is_not_kept(place: Path) -> None:
    spool = Spool(place, 1000)
    shipment = spool.begin(5, 2, 77)
    log = RunLog(5, 2, shipment)
    log.open()
    assert log.path == shipment.path
    log.close()
    assert shipment.ended
    assert [log.path] == [None]
    with pytest.raises(FileNotFoundError):
        shipment.piece(1)


def test_its_room_is_bounded_and_given_back(place: Path) -> None:
    spool = Spool(place, 10)
    assert (spool.take(6), spool.take(6), spool.take(6)) == (6, 4, 0)
    spool.give_back(3)
    assert spool.take(6) == 3


def test_what_does_not_fit_is_left_out_and_the_log_says_so(place: Path) -> None:
    spool = Spool(place, 20)
    shipment = written(spool, b"x" * 10 + b"y" * (TAIL_BYTES + 10))
    text = Path(shipment.path).read_bytes()
    note = b"\n[aaiclick] %d bytes were left out: AAICLICK_LOG_SPOOL_MB are on their way.\n"
    assert text == b"x" * 10 + b"y" * 10 + note % TAIL_BYTES
    assert shipment.size == len(text)
    other = written(spool, b"z" * 50, task=6)
    assert Path(other.path).read_bytes() == note % 50
    shipment.settle(True)
    assert not Path(shipment.path).exists()
    assert written(spool, b"z" * 5, task=7).piece(9) == b"z" * 5


def test_what_an_ended_process_has_left_is_taken_over_once(place: Path) -> None:
    dead = Spool(place, 1000)
    left = written(dead, b"last words")
    dead._held, held = [], dead._held  # its process is gone: nobody holds the lock
    live = Spool(place, 1000)
    written(live, b"of a live one")
    heir = Spool(place, 1000)
    assert heir.take_over() == 0
    for _, lock in held:
        os.close(lock)
    assert heir.take_over() == 1
    (found,) = heir.shipments
    assert (found.run, found.worker_id, found.ended) == ((5, 2), 77, True)
    assert found.piece(1000) == b"last words" + LEFT
    assert found.path == left.path
    assert Spool(place, 1000).take_over() == 0
    found.settle(True)
    heir.forget(found)
    heir.close()
    assert not Path(left.path).parent.exists()


def test_a_spool_without_logs_leaves_nothing(place: Path) -> None:
    Spool(place, 1000).close()
    assert list(place.iterdir()) == []
