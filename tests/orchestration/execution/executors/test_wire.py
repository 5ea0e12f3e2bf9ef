"""Messages arrive whole, in order, with their descriptors."""

from __future__ import annotations

import os
import socket

import pytest

from aaiclick.orchestration.execution.executors import questions, wire
from aaiclick.orchestration.models import CacheAnswer, CacheKey, Done, Failure
from tests.support import bodies

MESSAGES: list[wire.Message] = [
    wire.Fork(1),
    wire.Signal(5, 9),
    wire.Ready(),
    wire.Born(1, 5),
    wire.Born(2, 0, "no"),
    wire.Died(5, 256),
    wire.RunMessage(bodies.claim_of(bodies.echo, value="größe"), "x.log"),
    wire.StopMessage(),
    questions.IdsWanted(1, 16),
    questions.Ids(1, [2**62, 2**62 + 1]),
    questions.TablesWanted(2, ["t1_1_1"]),
    questions.TablesHeld(2, "ours"),
    questions.ResultWanted(3, CacheKey("d", "a.b", "i", "größe", 1.5, once=True)),
    questions.ResultFound(3, CacheAnswer(hit=True, result_json='"x"')),
    wire.Ended(Done(2**62, 3, '"x"'), None, False),
    wire.Ended(None, Failure(1, 2, "e", "t", ("a", "b"), permanent=True), True),
]


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_messages_arrive_whole_however_they_are_cut(size: int) -> None:
    data = b"".join(wire.packed(message) for message in MESSAGES)
    inbox = wire.Inbox()
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert [message for chunk in chunks for message in inbox.feed(chunk)] == MESSAGES


def test_a_report_is_one_or_the_other() -> None:
    assert isinstance(MESSAGES[-2], wire.Ended)
    assert isinstance(MESSAGES[-1], wire.Ended)
    assert isinstance(MESSAGES[-2].report, Done)
    assert isinstance(MESSAGES[-1].report, Failure)


@pytest.mark.parametrize("data", [b"\0\0\0\x04junk", b"\xff\xff\xff\xff", b"\0\0\0\x01\xc1"])
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(wire.Broken):
        list(wire.Inbox(bytes_max=1000).feed(data))


def test_descriptors_come_with_their_message() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, open(os.devnull) as file:
        assert wire.offer(ours, wire.Fork(1), [file.fileno()]) == b""
        assert wire.offer(ours, wire.Fork(2)) == b""
        data, fds = wire.receive(theirs)
        assert next(wire.Inbox().feed(data)) == wire.Fork(1)
        assert len(fds) == 1
        assert os.path.samestat(os.fstat(fds[0]), os.fstat(file.fileno()))
        os.close(fds[0])


def test_what_does_not_fit_at_once_is_left_to_be_sent() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        message = wire.RunMessage(bodies.claim_of(bodies.echo, value="x" * 5_000_000), None)
        rest = wire.offer(ours, message)
        assert rest
        assert wire.packed(message).endswith(rest)
