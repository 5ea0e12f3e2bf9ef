"""The messages between a worker, its nursery and its children: msgpack, each after its length.

Descriptors ride with the first bytes of the message that they belong to.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence

import msgspec

from aaiclick.config import settings
from aaiclick.orchestration.execution.executors.questions import Answer, EngineWanted, Question
from aaiclick.orchestration.models import Claim, Done, Failure, Report

_LENGTH = struct.Struct("!I")
CHUNK_BYTES = 256 * 1024
CHILD_BYTES = 1_000


class Broken(Exception):
    """What arrived is no message."""


class Fork(msgspec.Struct, tag=1, array_like=True):
    """To the nursery: make a child that speaks through the descriptor that comes with this."""

    serial: int


class Signal(msgspec.Struct, tag=2, array_like=True):
    """To the nursery: send a signal to a child and everything in its group."""

    pid: int
    number: int


class Spare(msgspec.Struct, tag=18, array_like=True):
    """To the nursery: what this child runs goes on although the worker is cut off; or that is over."""

    pid: int
    spared: bool


class Ready(msgspec.Struct, tag=3, array_like=True):
    """From the nursery: it can fork."""


class Born(msgspec.Struct, tag=4, array_like=True):
    """From the nursery: the child is there, or could not be made."""

    serial: int
    pid: int
    error: str = ""


class Died(msgspec.Struct, tag=5, array_like=True):
    """From the nursery: the child is gone, and its group with it; `status` is that of waitpid."""

    pid: int
    status: int


class RunMessage(msgspec.Struct, tag=6, array_like=True):
    """To a child: run this; its output goes into the descriptor that comes with this."""

    claim: Claim
    log_path: str | None


class StopMessage(msgspec.Struct, tag=7, array_like=True):
    """To a child: please end the run."""


class Ended(msgspec.Struct, tag=8, array_like=True):
    """From a child: what the run came to; `spent`: the child should not run another."""

    done: Done | None
    failure: Failure | None
    spent: bool

    @property
    def report(self) -> Report | None:
        """One or the other."""
        return self.done or self.failure


Message = (
    Fork | Signal | Spare | Ready | Born | Died | RunMessage | StopMessage | Ended | EngineWanted | Question | Answer
)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Message).decode


def report_bytes_max() -> int:
    """How large a report may be: a result, and all the tasks that a run may make, at a thousand bytes each."""
    limits = settings()
    return 2 * limits.value_bytes_max + CHILD_BYTES * limits.task_children_max + 1_000_000


def packed(message: Message) -> bytes:
    """The bytes of a message."""
    body = _encode(message)
    return _LENGTH.pack(len(body)) + body


class Inbox:
    """Bytes become messages as soon as they are complete."""

    def __init__(self, bytes_max: int = 2**32) -> None:
        self._bytes = bytearray()
        self._bytes_max = bytes_max

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that these bytes complete."""
        self._bytes += data
        while len(self._bytes) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._bytes)
            if length > self._bytes_max:
                raise Broken(f"a message of {length} bytes")
            end = _LENGTH.size + length
            if len(self._bytes) < end:
                return
            body = bytes(self._bytes[_LENGTH.size : end])
            del self._bytes[:end]
            try:
                yield _decode(body)
            except msgspec.MsgspecError as error:
                raise Broken(str(error)) from error


def send(line: socket.socket, message: Message) -> None:
    """Send a message on a line that blocks."""
    line.sendall(packed(message))


def offer(line: socket.socket, message: Message, fds: Sequence[int] = ()) -> bytes:
    """Send what fits at once on a line that does not block, with the descriptors; gives what is left to send."""
    data = packed(message)
    sent = socket.send_fds(line, [data], list(fds)) if fds else line.send(data)
    return data[sent:]


def receive(line: socket.socket) -> tuple[bytes, list[int]]:
    """What has arrived on a line, and the descriptors that came with it; nothing at the line's end."""
    data, fds, _, _ = socket.recv_fds(line, CHUNK_BYTES, 16)
    return data, fds
