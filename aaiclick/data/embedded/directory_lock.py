"""Who owns a directory of chdb: one process, by a lock; beside it, where the others reach the engine.

`<directory>.lock` is locked as long as its owner lives, however it dies; it stays when the owner goes.
`<directory>.gateway` says where the owner listens, with the password; only the directory's user may read it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from urllib.parse import quote, unquote
from weakref import WeakSet

from aaiclick.backend import check_root
from aaiclick.errors import EngineUnavailable
from aaiclick.file_owners import fault_around, fault_of

LOOK_EVERY_S = 0.02
LOCK_TRIES = 10
"""Someone who only looks whether there is an owner holds the lock for an instant."""

BYTES_MAX = 4096

SOCKET_PLACE_PREFIX = "aaiclick-gateway-"
"""How directories begin that are made for a socket alone."""

_UNIX = "unix://"


@dataclass(frozen=True)
class Endpoint:
    """Where a gateway listens, and how to log in; `tcp` is for others than ourselves, where it was asked for."""

    url: str
    user: str
    password: str = field(repr=False)
    pid: int
    tcp: str = ""

    @property
    def socket(self) -> Path | None:
        """The socket file where it listens; None if it does on a port."""
        return Path(unquote(self.url.removeprefix(_UNIX))) if self.url.startswith(_UNIX) else None


def unix_url(file: Path) -> str:
    """The address of a socket file."""
    return _UNIX + quote(str(file))


class Ownership:
    """The right to open a directory, until it is released or the process ends."""

    def __init__(self, directory: Path, descriptor: int) -> None:
        self.directory = directory
        self._descriptor = descriptor
        _held.add(self)

    def publish(self, endpoint: Endpoint) -> None:
        """Tell the others where the gateway listens; call it when it does."""
        file = _endpoint_file(self.directory)
        draft = file.with_name(f"{file.name}.{os.getpid()}")
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as out:
            json.dump(asdict(endpoint), out)
        os.replace(draft, file)

    def withdraw(self) -> None:
        """Tell nobody any more where the gateway listens."""
        if self._descriptor >= 0:
            _endpoint_file(self.directory).unlink(missing_ok=True)

    def release(self) -> None:
        """Let another process have the directory. Close the engine first."""
        if self._descriptor < 0:
            return
        self.withdraw()
        os.ftruncate(self._descriptor, 0)
        self._forget()

    def _forget(self) -> None:
        """Close the lock's file; in a forked child this leaves the lock to the parent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def __enter__(self) -> Ownership:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


_held: WeakSet[Ownership] = WeakSet()


def _leave_locks_to_the_parent() -> None:
    """A child that kept the file open would keep the lock when its parent, the owner, is dead."""
    for ownership in list(_held):
        ownership._forget()


os.register_at_fork(after_in_child=_leave_locks_to_the_parent)


def acquire(directory: Path) -> Ownership | None:
    """Own the directory, which is made if it is not there; None if another process owns it, or this one already."""
    directory = directory.resolve()
    _make_private(directory)
    descriptor = _open_lock(directory, os.O_RDWR | os.O_CREAT)
    try:
        locked = _lock(descriptor)
        if locked:
            _forget_the_dead(directory)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    except BaseException:
        os.close(descriptor)
        raise
    if locked:
        return Ownership(directory, descriptor)
    os.close(descriptor)
    return None


def owner_pid(directory: Path) -> int | None:
    """The process that owns the directory; None if there is none, or it has not said so yet."""
    return _look(directory.resolve())[1]


def find_gateway(directory: Path, wait_s: float, *, expected: bool = False) -> Endpoint | None:
    """Where the owner's gateway listens; waits for an owner that is starting, None at once if there is no owner.

    Say `expected` if one was just sent for: then it is waited for, too. What an owner that died left behind is not
    believed: its lock is free, or another process holds it.
    """
    directory = directory.resolve()
    deadline = time.monotonic() + wait_s
    while True:
        owned, pid = _look(directory)
        if not (owned or expected):
            return None
        endpoint = _read_endpoint(directory) if owned else None
        if endpoint is not None and endpoint.pid == pid:
            return endpoint
        if time.monotonic() >= deadline:
            return None
        time.sleep(LOOK_EVERY_S)


def _forget_the_dead(directory: Path) -> None:
    """Remove what an owner that died has left: its address, and a directory that was made for its socket."""
    left = _read_endpoint(directory)
    _endpoint_file(directory).unlink(missing_ok=True)
    if left is not None and left.socket is not None and left.socket.parent.name.startswith(SOCKET_PLACE_PREFIX):
        with suppress(OSError):
            left.socket.unlink(missing_ok=True)
            left.socket.parent.rmdir()


def _lock_file(directory: Path) -> Path:
    return directory.with_name(f"{directory.name}.lock")


def _endpoint_file(directory: Path) -> Path:
    return directory.with_name(f"{directory.name}.gateway")


def refuse_foreign(directory: Path) -> None:
    """Refuse a directory that another user owns or may write, and a local root like that."""
    check_root()
    if (fault := fault_of(directory) or fault_around(directory)) is not None:
        raise EngineUnavailable(directory=directory, cause=fault.cause, hint=fault.hint)


def _make_private(directory: Path) -> None:
    """The directory for its user only, and so are those above it that are made.

    One that is there is made so only while it is empty: a directory with other things in it is not ours to close.
    """
    refuse_foreign(directory)
    if directory.exists() and not directory.is_dir():
        raise EngineUnavailable(directory=directory, cause="it is not a directory", hint="Name another place.")
    try:
        missing = [place for place in (directory, *directory.parents) if not place.exists()]
        for place in reversed(missing):
            place.mkdir(mode=0o700, exist_ok=True)
        if stat.S_IMODE(directory.stat().st_mode) & 0o077 and not any(directory.iterdir()):
            directory.chmod(0o700)
    except OSError as error:
        raise _unusable(directory, error) from error


def _open_lock(directory: Path, flags: int) -> int:
    file = _lock_file(directory)
    try:
        descriptor = os.open(file, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except OSError as error:
        raise _unusable(file, error) from error
    if not _is_our_file(descriptor):
        os.close(descriptor)
        raise EngineUnavailable(
            directory=directory, cause=f"{file} is not a file of this user", hint="Remove it, or use another directory."
        )
    return descriptor


def _is_our_file(descriptor: int) -> bool:
    found = os.fstat(descriptor)
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def _unusable(file: Path, error: OSError) -> EngineUnavailable:
    cause = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror or str(error)
    return EngineUnavailable(directory=file, cause=cause, hint="")


def _lock(descriptor: int) -> bool:
    for _ in range(LOCK_TRIES):
        if _try_lock(descriptor, fcntl.LOCK_EX):
            return True
        time.sleep(LOOK_EVERY_S / LOCK_TRIES)
    return False


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _look(directory: Path) -> tuple[bool, int | None]:
    """Whether there is an owner, and which process it is."""
    if not os.path.lexists(_lock_file(directory)):
        return False, None
    descriptor = _open_lock(directory, os.O_RDONLY)
    try:
        if _try_lock(descriptor, fcntl.LOCK_SH):
            return False, None
        said = os.pread(descriptor, BYTES_MAX, 0)
    finally:
        os.close(descriptor)
    return True, int(said) if said.isdigit() else None


def _read_endpoint(directory: Path) -> Endpoint | None:
    """What the file says; None if there is none, it is not ours, or others could have read or written it."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(_endpoint_file(directory), flags)
    except OSError:
        return None
    try:
        if not _is_our_file(descriptor) or stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o077:
            return None
        said = os.read(descriptor, BYTES_MAX)
    finally:
        os.close(descriptor)
    with suppress(ValueError, TypeError):
        return Endpoint(**json.loads(said))
    return None
