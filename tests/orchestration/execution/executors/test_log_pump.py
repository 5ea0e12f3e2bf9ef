"""What is written into a pipe comes out in the log."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from aaiclick.config import reset_settings
from aaiclick.orchestration.execution.executors.log_pump import LogPump
from aaiclick.orchestration.execution.logs.run_logs import RunLog
from tests.support.bodies import until


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AAICLICK_LOG_DIR", str(tmp_path))
    reset_settings()
    return tmp_path


@pytest.fixture
def pump() -> Iterator[LogPump]:
    pump = LogPump()
    yield pump
    pump.close()


async def test_what_is_written_is_soon_in_the_log(pump: LogPump, directory: Path) -> None:
    flow, writing = pump.open(RunLog(1, 1))
    os.write(writing, b"hello")
    await until(lambda: (directory / "1.log").exists() and (directory / "1.log").read_bytes() == b"hello")
    os.close(writing)
    pump.finish(flow)


def test_at_the_end_everything_is_in_the_log_though_someone_holds_the_other_end(pump: LogPump, directory: Path) -> None:
    for number in range(200):
        flow, writing = pump.open(RunLog(number, 1))
        os.write(writing, b"x" * 10_000)
        pump.finish(flow)
        assert (directory / f"{number}.log").stat().st_size == 10_000
        with pytest.raises(BrokenPipeError):
            os.write(writing, b"x")
        os.close(writing)


def test_many_may_write_at_once(pump: LogPump, directory: Path) -> None:
    flows = [pump.open(RunLog(number, 1)) for number in range(20)]

    def write(fd: int) -> None:
        left = b"0123456789" * 50_000
        while left:
            left = left[os.write(fd, left) :]

    threads = [threading.Thread(target=write, args=(writing,)) for _, writing in flows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, (flow, writing) in enumerate(flows):
        os.close(writing)
        pump.finish(flow)
        assert (directory / f"{number}.log").read_bytes() == b"0123456789" * 50_000


async def test_a_log_that_breaks_stops_no_other(
    pump: LogPump, directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(RunLog):
        def write(self, data: bytes) -> None:
            raise MemoryError

    flows = [pump.open(Broken(1, 1)), pump.open(RunLog(2, 1))]
    os.write(flows[0][1], b"x")
    await until(lambda: "cannot be written" in caplog.text)
    os.write(flows[1][1], b"fine")
    pump.finish(flows[1][0])
    pump.finish(flows[0][0])
    for _, writing in flows:
        os.close(writing)
    assert (directory / "2.log").read_bytes() == b"fine"


def test_nothing_is_left_open(directory: Path) -> None:
    before = psutil.Process().num_fds()
    pump = LogPump()
    for number in range(50):
        flow, writing = pump.open(RunLog(number, 1))
        os.close(writing)
        pump.finish(flow)
    pump.close()
    assert psutil.Process().num_fds() == before
