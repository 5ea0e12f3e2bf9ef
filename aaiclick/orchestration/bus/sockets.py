"""The bus between the processes of one machine that share a SQLite file: datagrams to Unix sockets beside the file.

Each listening bus has a socket in the directory `{file}.wake`, which must belong to this user and be closed to all
others. No symbolic link is followed, and files that are not sockets of this bus are left alone.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import secrets
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aaiclick.backoff import Backoff, said
from aaiclick.orchestration.bus.local import GAP_S, LocalBus

MESSAGE_BYTES_MAX = 4096
MESSAGES_AT_ONCE_MAX = 100
ADDRESS_BYTES_MAX = 100
"""Slightly less than what operating systems allow for the path of a socket: 104 to 108 bytes."""

DIRECTORY_OF_DESCRIPTORS = Path("/proc/self/fd")
"""On Linux a socket is addressed through its open directory.

So the length of the path does not matter, nor whether a directory on it was renamed or replaced meanwhile.
"""

_OURS = re.compile(r"[0-9]+-[0-9a-f]{8}\.sock")


class SocketBus(LocalBus):
    """Carries hints between all processes of this machine that use the same SQLite file."""

    def __init__(self, url: str, file: Path) -> None:
        super().__init__(url)
        self._directory = file.with_name(f"{file.name}.wake")
        self._outgoing: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._socket: socket.socket | None = None
        self._name = f"{os.getpid()}-{secrets.token_hex(4)}.sock"
        self._hearing, self._telling = Backoff(), Backoff()

    def _pass_on(self, words: frozenset[str]) -> None:
        if not self._closed:
            self._outgoing |= words
            if self._timer is None:
                self._send()

    async def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._send()

    async def listen(self) -> None:
        await super().listen()
        if self._closed or self._socket is not None:
            return
        try:
            self._socket = _bind(self._directory, self._name)
            self._loop.add_reader(self._socket, self._read)
        except OSError as error:
            self._warn(self._hearing, "hearing wake-ups", error)

    async def close(self) -> None:
        await super().close()
        if self._timer is not None:
            self._timer.cancel()
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None
            with suppress(OSError), _opened(self._directory) as directory:
                os.unlink(self._name, dir_fd=directory)

    def _send(self) -> None:
        """Send the pending hints now. Hints told within the next `GAP_S` seconds go in one message after it."""
        self._timer = None
        if not self._outgoing:
            return
        message = self._room.pack(self._outgoing).encode()
        self._outgoing.clear()
        try:
            _send_to_all(self._directory, message, but=self._name)
            self._telling.over()
            if not self._hearing.going_on:
                self.trouble = ""
        except FileNotFoundError:
            pass  # the directory does not exist: no process has listened yet
        except OSError as error:
            self._warn(self._telling, "telling wake-ups", error)
        self._timer = self._loop.call_later(GAP_S, self._send)

    def _read(self) -> None:
        assert self._socket is not None
        with suppress(OSError):  # BlockingIOError: no more messages
            for _ in range(MESSAGES_AT_ONCE_MAX):
                message = self._socket.recv(MESSAGE_BYTES_MAX)
                self._hear(self._room.unpack(message.decode(errors="replace")))

    def _warn(self, backoff: Backoff, deed: str, error: OSError) -> None:
        self.trouble = said(error)
        backoff.met(f"{deed} through {self._directory}", error, "workers look every few seconds instead")


def _bind(directory: Path, name: str) -> socket.socket:
    """Return a new socket bound to `name` in the directory, which is created if it is missing."""
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    with _opened(directory) as opened:
        ours = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            ours.setblocking(False)
            # renamed once it is complete: a socket that cannot be reached yet would be deleted as stale
            ours.bind(_address(directory, opened, f"new-{name}"))
            os.rename(f"new-{name}", name, src_dir_fd=opened, dst_dir_fd=opened)
        except BaseException:
            ours.close()
            raise
        return ours


def _send_to_all(directory: Path, message: bytes, *, but: str) -> None:
    with _opened(directory) as opened, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        for name in os.listdir(opened):
            if _OURS.fullmatch(name) and name != but and _is_socket(opened, name):
                _send_to(sender, message, _address(directory, opened, name), opened, name)


def _send_to(sender: socket.socket, message: bytes, address: str, directory: int, name: str) -> None:
    """Send to one socket. A receiver that is gone, or whose buffer is full, misses the message."""
    try:
        sender.sendto(message, address)
    except OSError as error:
        if error.errno == errno.ECONNREFUSED:  # the listening process died without closing its socket
            with suppress(OSError):
                os.unlink(name, dir_fd=directory)


@contextmanager
def _opened(directory: Path) -> Iterator[int]:
    """Open the directory and yield its descriptor; a symbolic link in its place is refused.

    Raises PermissionError if it belongs to another user, or if others may read or write it.
    """
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(opened)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise PermissionError(errno.EPERM, "other users can write to the directory")
        yield opened
    finally:
        os.close(opened)


def _address(directory: Path, opened: int, name: str) -> str:
    if DIRECTORY_OF_DESCRIPTORS.is_dir():
        return str(DIRECTORY_OF_DESCRIPTORS / str(opened) / name)
    address = str(directory / name)
    if len(os.fsencode(address)) > ADDRESS_BYTES_MAX:
        raise OSError(errno.ENAMETOOLONG, "the path is too long for a socket")
    return address


def _is_socket(directory: int, name: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False
