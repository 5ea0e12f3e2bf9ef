"""Where a gateway listens: on a socket file that only this user reaches, and on a TCP port where one is asked for."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from aaiclick.data.embedded.directory_lock import SOCKET_PLACE_PREFIX, unix_url

BACKLOG = 128
PATH_BYTES_MAX = 100
"""Operating systems limit the path of a socket to between 103 and 107 bytes."""

FILE = "gateway.sock"


class Listener:
    """A listening socket, and its file, which is removed when it is closed."""

    def __init__(self, listening: socket.socket, url: str, file: Path | None = None) -> None:
        self.socket = listening
        self.url = url
        self._file = file

    def wake_up(self) -> None:
        """Connect once and send nothing, so that `accept` returns."""
        with suppress(OSError), socket.socket(self.socket.family, socket.SOCK_STREAM) as client:
            client.settimeout(1.0)
            client.connect(self.socket.getsockname())

    def close(self) -> None:
        self.socket.close()
        if self._file is not None:
            remove_socket(self._file)


def listen_on_port(host: str, port: int) -> Listener:
    """Listen on TCP; port 0 takes any that is free."""
    listening = socket.create_server((host, port), backlog=BACKLOG)
    return Listener(listening, "http://{}:{}".format(*listening.getsockname()[:2]))


def listen_in_private(directory: Path) -> Listener | None:
    """Listen on a socket file beside the directory, for this user alone; return None where there can be none.

    If its path would be too long, or the file system has no sockets, the file is in a new temporary directory.
    """
    if not hasattr(socket, "AF_UNIX"):
        return None
    place = directory.with_name(f"{directory.name}.run")
    for make in (_private, _temporary):
        with suppress(OSError):
            file = make(place) / FILE
            if len(os.fsencode(file)) <= PATH_BYTES_MAX:
                return _listen_at(file)
            remove_socket(file)
    return None


def _temporary(_: Path) -> Path:
    return Path(tempfile.mkdtemp(prefix=SOCKET_PLACE_PREFIX))


def _private(place: Path) -> Path:
    """Make the directory for this user alone, and return it; raise PermissionError if it is another user's."""
    place.mkdir(mode=0o700, exist_ok=True)
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(f"{place} is not a directory of this user")
    if stat.S_IMODE(found.st_mode) & 0o077:
        place.chmod(0o700)
    return place


def _listen_at(file: Path) -> Listener:
    file.unlink(missing_ok=True)  # left by an owner that died
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(str(file))
        file.chmod(0o600)
        listening.listen(BACKLOG)
    except BaseException:
        listening.close()
        remove_socket(file)
        raise
    return Listener(listening, unix_url(file), file)


def remove_socket(file: Path) -> None:
    """Remove a socket and the directory that was made for it."""
    with suppress(OSError):
        file.unlink(missing_ok=True)
        file.parent.rmdir()
