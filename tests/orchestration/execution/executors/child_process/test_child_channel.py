"""A child's end of its line, with a worker that says whatever a test wants."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

import pytest

from aaiclick.orchestration.execution.executors.child_process.child_channel import ChildChannel
from aaiclick.orchestration.execution.executors.child_process.child_watchdog import ChildWatchdog
from aaiclick.orchestration.execution.executors.questions import EngineWanted, Ids, IdsWanted, Slots, SlotsWanted
from aaiclick.orchestration.execution.executors.shared_times import SharedTimes
from aaiclick.orchestration.execution.executors.wire import Inbox, RunMessage, StopMessage, offer, packed, receive
from aaiclick.orchestration.execution.runs.current import Running, occupy
from aaiclick.orchestration.execution.runs.pipeline import Stopped
from tests.support import bodies
from tests.support.bodies import claim_of


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs
    occupy(None)


@pytest.fixture
def worker(ends: tuple[socket.socket, socket.socket]) -> socket.socket:
    return ends[0]


@pytest.fixture
def line(ends: tuple[socket.socket, socket.socket]) -> ChildChannel:
    return ChildChannel(ends[1], ChildWatchdog(SharedTimes()))


def begin(line: ChildChannel) -> None:
    running = Running(claim_of(bodies.nothing))
    running.poll = line.is_stop_wanted
    line.begin(running)
    occupy(running)


def test_runs_come_with_the_descriptor_of_their_output(worker: socket.socket, line: ChildChannel) -> None:
    claims = [claim_of(bodies.nothing), claim_of(bodies.nothing)]
    for claim in claims:
        reading, writing = os.pipe()
        assert not offer(worker, RunMessage(claim, None), [writing])
        os.close(writing)
        os.close(reading)
    worker.sendall(packed(StopMessage()))  # between runs: too late
    worker.shutdown(socket.SHUT_WR)
    came = list(line.runs())
    assert [run.claim for run, _ in came] == claims
    for _, output in came:
        os.close(output)


def test_an_answer_is_heard_and_a_stop_before_it_remembered(worker: socket.socket, line: ChildChannel) -> None:
    begin(line)
    worker.sendall(packed(StopMessage()) + packed(Slots(8, 3)) + packed(Ids(7, [1, 2])))
    assert line.ask(IdsWanted(7, 2)) == Ids(7, [1, 2])
    assert line.is_stop_wanted()
    assert line.ask(SlotsWanted(8)) == Slots(8, 3)


def test_what_takes_a_while_is_not_waited_for_once_the_run_is_to_end(worker: socket.socket, line: ChildChannel) -> None:
    begin(line)
    worker.sendall(packed(StopMessage()))
    with pytest.raises(ConnectionError, match="the run was asked to end"):
        line.ask(SlotsWanted(1))


def test_nobody_is_asked_between_runs_or_when_the_worker_is_gone(worker: socket.socket, line: ChildChannel) -> None:
    with pytest.raises(ConnectionError, match="the run is over"):
        line.ask(IdsWanted(1, 1))
    begin(line)
    worker.shutdown(socket.SHUT_WR)
    with pytest.raises(ConnectionError, match="the worker is gone"):
        line.ask(IdsWanted(2, 1))
    assert line.is_stop_wanted()


def test_a_stop_ends_with_its_run(worker: socket.socket, line: ChildChannel) -> None:
    begin(line)
    worker.sendall(packed(StopMessage()))
    assert line.is_stop_wanted()
    line.end()
    begin(line)
    assert not line.is_stop_wanted()


def test_a_signal_counts_once_the_worker_has_asked(worker: socket.socket, line: ChildChannel) -> None:
    begin(line)
    line.on_sigterm(15, None)
    worker.sendall(packed(StopMessage()))
    with pytest.raises(Stopped, match="stopped by the worker"):
        line.on_sigterm(15, None)


def test_what_is_said_on_several_threads_arrives_in_one_piece(worker: socket.socket, line: ChildChannel) -> None:
    said = [threading.Thread(target=line.say, args=(EngineWanted(),)) for _ in range(20)]
    for each in said:
        each.start()
    for each in said:
        each.join()
    line.report(packed(EngineWanted()))
    inbox, heard = Inbox(), 0
    while heard < 21:
        heard += sum(isinstance(message, EngineWanted) for message in inbox.feed(receive(worker)[0]))
    assert heard == 21
