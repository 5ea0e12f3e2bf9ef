"""The lock by which one process owns a directory of chdb, and the file that tells others where it serves the engine.

`<directory>.lock` is locked as long as its owner lives, however it dies; the file stays when the owner exits.
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
"""How often a lock is tried: a process that only checks for an owner holds it for an instant."""

BYTES_MAX = 4096

SOCKET_PLACE_PREFIX = "aaiclick-gateway-"
"""The prefix of temporary directories that are made for a socket."""

_UNIX = "unix://"


@dataclass(frozen=True)
class Endpoint:
    """Where a gateway listens, and how to log in; `tcp` is an address for other programs, where one is configured."""

    url: str
    user: str
    password: str = field(repr=False)
    pid: int
    tcp: str = ""

    @property
    def socket(self) -> Path | None:
        """Return the socket file where the gateway listens; None if it listens on a port."""
        return Path(unquote(self.url.removeprefix(_UNIX))) if self.url.startswith(_UNIX) else None


def unix_url(file: Path) -> str:
    return _UNIX + quote(str(file))


class Ownership:
    """The ownership of a directory, until it is released or the process ends."""

    def __init__(self, directory: Path, descriptor: int) -> None:
        self.directory = directory
        self._descriptor = descriptor
        _held.add(self)

    def publish(self, endpoint: Endpoint) -> None:
        """Write where the gateway listens; call this once it does."""
        file = _endpoint_file(self.directory)
        draft = file.with_name(f"{file.name}.{os.getpid()}")
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as out:
            json.dump(asdict(endpoint), out)
        os.replace(draft, file)

    def withdraw(self) -> None:
        """Remove the file that tells where the gateway listens."""
        if self._descriptor >= 0:
            _endpoint_file(self.directory).unlink(missing_ok=True)

    def release(self) -> None:
        """Release the directory for other processes. Close the engine first."""
        if self._descriptor < 0:
            return
        self.withdraw()
        os.ftruncate(self._descriptor, 0)
        self._forget()

    def _forget(self) -> None:
        """Close the file of the lock; in a forked child this leaves the lock to the parent."""
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
    """Close the lock files in a forked child: else it would hold the lock after its parent, the owner, is dead."""
    for ownership in list(_held):
        ownership._forget()


os.register_at_fork(after_in_child=_leave_locks_to_the_parent)


def acquire(directory: Path) -> Ownership | None:
    """Own the directory, which is made if it is missing; return None if it is owned, by this process or another."""
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
    """Return the id of the process that owns the directory; None if there is none, or its id is not written yet."""
    return _look(directory.resolve())[1]


def find_gateway(directory: Path, wait_s: float, *, expected: bool = False) -> Endpoint | None:
    """Return where the owner's gateway listens; wait for an owner that is starting, return None if there is none.

    Pass `expected` if an owner was just asked for: then it is waited for even if none has the lock yet. The file of an
    owner that died is not used: the lock is free then, or another process holds it.
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
    """Remove what a dead owner has left: its address, and a directory that was made for its socket."""
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
    """Raise EngineUnavailable if another user owns or may write the directory; check the local root likewise."""
    check_root()
    if (fault := fault_of(directory) or fault_around(directory)) is not None:
        raise EngineUnavailable(directory=directory, cause=fault.cause, hint=fault.hint)


def _make_private(directory: Path) -> None:
    """Make the directory, and those above it that are missing, for this user only.

    The mode of an existing directory is changed only while it is empty: it may hold other files, for other users.
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
    """Return whether there is an owner, and its process id if that is written."""
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
    """Return the endpoint in the file; None if there is no file, it is not ours, or others may read or write it."""
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
