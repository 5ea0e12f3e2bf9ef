"""The protocol between a worker, its nursery and its children: messages in msgpack, each preceded by its length.

A descriptor is sent together with the first bytes of its message.
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
    """Raised if received bytes are not a valid message."""


class Fork(msgspec.Struct, tag=1, array_like=True):
    """To the nursery: fork a child. The descriptor of its line is sent with this message."""

    serial: int


class Signal(msgspec.Struct, tag=2, array_like=True):
    """To the nursery: send a signal to a child and its process group."""

    pid: int
    number: int


class Spare(msgspec.Struct, tag=18, array_like=True):
    """To the nursery: whether the child's run goes on when the worker is cut off."""

    pid: int
    spared: bool


class Ready(msgspec.Struct, tag=3, array_like=True):
    """From the nursery: it is ready to fork."""


class Born(msgspec.Struct, tag=4, array_like=True):
    """From the nursery: the child was forked, or could not be, with the `error`."""

    serial: int
    pid: int
    error: str = ""


class Died(msgspec.Struct, tag=5, array_like=True):
    """From the nursery: the child has died and its process group was killed. `status` is that of waitpid."""

    pid: int
    status: int


class RunMessage(msgspec.Struct, tag=6, array_like=True):
    """To a child: run this claim. The descriptor for its output is sent with this message."""

    claim: Claim
    log_path: str | None


class StopMessage(msgspec.Struct, tag=7, array_like=True):
    """To a child: the run is asked to end."""


class Ended(msgspec.Struct, tag=8, array_like=True):
    """From a child: the run's report, in `done` or `failure`. `spent` says that the child must not run another."""

    done: Done | None
    failure: Failure | None
    spent: bool

    @property
    def report(self) -> Report | None:
        """The report, whichever of the two it is; None if there is neither."""
        return self.done or self.failure


Message = (
    Fork | Signal | Spare | Ready | Born | Died | RunMessage | StopMessage | Ended | EngineWanted | Question | Answer
)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Message).decode


def report_bytes_max() -> int:
    """Return the maximum size of a report in bytes: two of the largest values, all possible tasks, and a margin."""
    limits = settings()
    return 2 * limits.value_bytes_max + CHILD_BYTES * limits.task_children_max + 1_000_000


def packed(message: Message) -> bytes:
    """Encode a message."""
    body = _encode(message)
    return _LENGTH.pack(len(body)) + body


class Inbox:
    """Decodes a stream of bytes into messages. `bytes_max` limits the size of one message."""

    def __init__(self, bytes_max: int = 2**32) -> None:
        self._bytes = bytearray()
        self._bytes_max = bytes_max

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield the messages that these bytes complete. Raises Broken for a message that is invalid or too large.

        It is a generator: the bytes are added when it is iterated.
        """
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
    """Send a message on a blocking socket."""
    line.sendall(packed(message))


def offer(line: socket.socket, message: Message, fds: Sequence[int] = ()) -> bytes:
    """Send on a non-blocking socket what it accepts at once, with the descriptors. Return the unsent rest."""
    data = packed(message)
    sent = socket.send_fds(line, [data], list(fds)) if fds else line.send(data)
    return data[sent:]


def receive(line: socket.socket) -> tuple[bytes, list[int]]:
    """Receive bytes and the descriptors sent with them. Empty bytes mean that the other end is closed."""
    data, fds, _, _ = socket.recv_fds(line, CHUNK_BYTES, 16)
    return data, fds
