"""The nursery, spoken to as a worker speaks to it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from aaiclick.orchestration.execution.executors import nursery, wire
from aaiclick.orchestration.execution.executors.shared_times import SharedTimes
from tests.support.bodies import is_alive, until


class Worker:
    """The worker's end of the line."""

    def __init__(self) -> None:
        self.line, theirs = socket.socketpair()
        self.inbox = wire.Inbox()
        self.messages: list[wire.Message] = []
        self.page = SharedTimes()
        with theirs:
            fds = [theirs.fileno(), self.page.fd]
            command = [sys.executable, "-m", nursery.__name__, *map(str, fds), ""]
            self.process = subprocess.Popen(command, pass_fds=fds, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.line.settimeout(60)

    def until_ready(self) -> None:
        assert self.hear() == wire.Ready()

    def end(self) -> None:
        """Be gone; the nursery notices it, says nothing and ends."""
        self.line.close()
        _, said = self.process.communicate(timeout=60)
        assert (self.process.returncode, said) == (0, b"")

    def hear(self) -> wire.Message:
        while not self.messages:
            self.messages += self.inbox.feed(self.line.recv(4096))
        return self.messages.pop(0)

    def fork(self, serial: int) -> tuple[int, socket.socket]:
        ours, theirs = socket.socketpair()
        with theirs:
            wire.offer(self.line, wire.Fork(serial), [theirs.fileno()])
            born = self.hear()
        assert isinstance(born, wire.Born)
        assert born.serial == serial
        return born.pid, ours


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker()
    worker.until_ready()
    yield worker
    worker.end()


def test_it_forks_and_tells_of_deaths(worker: Worker) -> None:
    children = [worker.fork(serial) for serial in (1, 2)]
    assert len({pid for pid, _ in children}) == 2
    wire.send(worker.line, wire.Signal(children[0][0], signal.SIGKILL))
    assert worker.hear() == wire.Died(children[0][0], signal.SIGKILL)
    children[1][1].close()  # a child whose worker hangs up ends by itself
    assert worker.hear() == wire.Died(children[1][0], 0)
    children[0][1].close()


def test_a_child_leads_a_session_of_its_own(worker: Worker) -> None:
    pid, line = worker.fork(1)
    with line:
        while os.getsid(pid) != pid:  # it has only just been born
            pass
        assert os.getsid(pid) != os.getsid(worker.process.pid)


def test_it_signals_nobody_but_its_own(worker: Worker) -> None:
    with subprocess.Popen(["sleep", "60"]) as bystander:
        wire.send(worker.line, wire.Signal(bystander.pid, signal.SIGKILL))
        pid, line = worker.fork(1)
        wire.send(worker.line, wire.Signal(pid, signal.SIGKILL))
        assert worker.hear() == wire.Died(pid, signal.SIGKILL)
        line.close()
        assert bystander.poll() is None
        bystander.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_to_everyone_do_not_end_it(worker: Worker, number: signal.Signals) -> None:
    os.kill(worker.process.pid, number)
    pid, line = worker.fork(1)
    line.close()
    assert worker.hear() == wire.Died(pid, 0)


async def test_when_the_worker_is_gone_it_kills_its_children_and_ends(worker: Worker) -> None:
    pid, line = worker.fork(1)
    os.kill(pid, signal.SIGSTOP)
    worker.line.close()
    assert worker.process.wait(60) == 0
    await until(lambda: not is_alive(pid))
    line.close()


def test_what_is_no_child_of_ours_is_left_to_others() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        assert child.pid in nursery.adopted(set())
        assert child.pid not in nursery.adopted({child.pid})
        nursery.signal_group(child.pid, signal.SIGKILL)  # it leads no group: it alone is meant
        assert child.wait(60) == -signal.SIGKILL
        nursery.signal_group(child.pid, signal.SIGKILL)


# ---------------------------------------------------------------- a worker that is gone


def test_a_worker_that_is_gone_before_it_was_ready() -> None:
    Worker().end()


def test_a_worker_that_is_gone_while_it_forks() -> None:
    worker = Worker()
    worker.until_ready()
    lines = [socket.socketpair() for _ in range(20)]
    for serial, (_, theirs) in enumerate(lines):
        wire.offer(worker.line, wire.Fork(serial), [theirs.fileno()])
    worker.end()
    for pair in lines:
        for line in pair:
            line.close()


def test_a_worker_that_is_gone_while_it_tells_of_deaths() -> None:
    worker = Worker()
    worker.until_ready()
    born = [worker.fork(serial) for serial in range(5)]
    for pid, _ in born:
        wire.send(worker.line, wire.Signal(pid, signal.SIGKILL))
    worker.end()
    for _, line in born:
        line.close()


def test_a_worker_that_is_gone_in_the_middle_of_a_word() -> None:
    worker = Worker()
    worker.until_ready()
    worker.line.send(wire.packed(wire.Signal(1, 15))[:-1])
    worker.end()


def test_it_kills_what_must_not_outlast_the_page_though_nobody_tells_it(worker: Worker) -> None:
    """The worker is cut off, or paused; a child that is spared goes on."""
    (stopped, _line), (spared, _other) = worker.fork(1), worker.fork(2)
    wire.send(worker.line, wire.Spare(spared, True))
    worker.fork(3)  # by then it has heard that
    worker.page.write(0.0, time.monotonic())
    died = [worker.hear(), worker.hear()]
    assert stopped in {each.pid for each in died if isinstance(each, wire.Died)}
    assert is_alive(spared)
