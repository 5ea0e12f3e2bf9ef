"""Logs on the disk of a worker's machine until they have been sent to where they are kept.

Each process has a folder of its own, and holds a lock on it. The folder of a process that was killed is taken over by
the next worker of the machine, which sends what is left in it.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

LOCK = "lock"

LEFT = b"\n[aaiclick] The worker ended before it had sent this log. The next worker of its machine has sent it.\n"

_NAME = re.compile(r"([0-9]{1,19})\.([0-9]{1,19})\.([0-9]{1,10})\.log", re.ASCII)


class Shipment:
    """The log of one run on its way. The thread that writes the log tells how long it is, and when it has ended."""

    def __init__(self, spool: Spool, path: str, run: tuple[int, int], worker_id: int, size: int = 0) -> None:
        self.spool, self.path, self.run, self.worker_id = spool, path, run, worker_id
        self.size = size
        """Bytes of the file."""
        self.sent = 0
        """Bytes that have arrived."""
        self.ended = False
        """Nothing will be added to the file."""
        self.settled: Future[bool] = Future()
        """Whether all of it has arrived, once that is known."""
        self.place = path
        """Where the log is, for people."""

    def piece(self, count: int) -> bytes:
        """Return the next bytes to send; raise FileNotFoundError if nothing was written."""
        with open(self.path, "rb") as file:
            file.seek(self.sent)
            return file.read(count)

    def take(self, wanted: int) -> int:
        """Return how many of so many bytes may be written to the file."""
        return self.spool.take(wanted)

    def grew(self, count: int) -> None:
        """Tell that so many bytes were written."""
        self.size += count

    def end(self) -> None:
        """Tell that nothing will be added."""
        self.ended = True
        self.spool.wake()

    def settle(self, arrived: bool) -> None:
        """Remove the file; tell those who wait whether all of it has arrived."""
        with suppress(FileNotFoundError):
            os.unlink(self.path)
        self.spool.give_back(self.size)
        if not self.settled.done():
            self.settled.set_result(arrived)


class Spool:
    """The logs of this process that have not been sent. Safe for threads."""

    def __init__(self, parent: Path, bytes_max: int) -> None:
        self.parent, self.bytes_max = parent, bytes_max
        self.shipments: list[Shipment] = []
        self.on_change: Callable[[], None] = lambda: None
        """Called when there is something to send."""
        self._taken = 0
        self._lock = threading.Lock()
        self._held: list[tuple[Path, int]] = []
        """Folders, with the descriptors of their locks; the first is that of this process."""
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        while not self._hold(self._new_folder()):  # another process took it for one that was left
            pass

    @property
    def directory(self) -> Path:
        """The folder of this process."""
        return self._held[0][0]

    def begin(self, task_id: int, epoch: int, worker_id: int) -> Shipment:
        """Return the shipment of a new log, whose file does not exist yet."""
        path = str(self.directory / f"{worker_id:d}.{task_id:d}.{epoch:d}.log")
        return self._add(Shipment(self, path, (task_id, epoch), worker_id))

    def take_over(self) -> int:
        """Take over what processes that have ended have left, and return how many logs these are."""
        found = 0
        for folder in self.parent.iterdir():
            if any(folder == held for held, _ in self._held) or not folder.is_dir() or not self._hold(folder):
                continue
            for file in folder.iterdir():
                if named := _NAME.fullmatch(file.name):
                    worker, task, epoch = map(int, named.groups())
                    size = _add_note(file)
                    with self._lock:
                        self._taken += size
                    self._add(Shipment(self, str(file), (task, epoch), worker, size)).ended = True
                    found += 1
        self.wake()
        return found

    def take(self, wanted: int) -> int:
        """Return how many of so many bytes may be written; they count until they are given back."""
        with self._lock:
            given = max(0, min(wanted, self.bytes_max - self._taken))
            self._taken += given
        return given

    def give_back(self, count: int) -> None:
        """Free the room of bytes that were sent."""
        with self._lock:
            self._taken = max(0, self._taken - count)

    def wake(self) -> None:
        """Tell the sender that there is something to do."""
        self.on_change()

    def forget(self, shipment: Shipment) -> None:
        """Drop a shipment that is settled."""
        with self._lock:
            self.shipments = [each for each in self.shipments if each is not shipment]

    def close(self) -> None:
        """Remove folders that are empty, and let go of the others: the next worker of this machine sends those logs."""
        for folder, lock in self._held:
            if all(each.name == LOCK for each in folder.iterdir()):
                with suppress(OSError):  # another process may be looking into it
                    (folder / LOCK).unlink()
                    folder.rmdir()
            os.close(lock)
        self._held = []

    def _add(self, shipment: Shipment) -> Shipment:
        with self._lock:
            self.shipments = [*self.shipments, shipment]
        return shipment

    def _new_folder(self) -> Path:
        folder = self.parent / f"{os.getpid()}-{secrets.token_hex(4)}"
        folder.mkdir(mode=0o700)
        return folder

    def _hold(self, folder: Path) -> bool:
        """Lock a folder; return False if a live process has it."""
        try:
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:  # it was emptied meanwhile
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        self._held.append((folder, lock))
        return True


def _add_note(file: Path) -> int:
    """Say in a log that was left why it ends there. Return its size."""
    with file.open("ab") as log:
        log.write(LEFT)
        return log.tell()
