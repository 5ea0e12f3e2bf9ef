"""Grants, the right to make ids with one machine id within a window of time, and the sources that issue them.

No window is granted twice: its end is stored before the window is used. See ids.py for the whole scheme.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from aaiclick.clock import Clock
from aaiclick.errors import ConfigError
from aaiclick.file_owners import fault_of

SEQUENCES = 4096
ALLOTTED_MACHINE_IDS = range(512)
RANDOM_MACHINE_IDS = range(768, 1024)

FAR_MS = 2**53
WINDOW_MS = 1_000
"""Length of a full window on a slot. If its process is killed, the slot's next holder begins after the window's end."""

FIRST_WINDOW_MS = 50
"""Length of the first window; each is twice the one before. Short-lived processes that follow each other on one slot
thus do not get ahead of the time."""

RANDOM_WINDOW_MS = 10_000
"""Length of a random grant, after which the source is asked again."""


@dataclass(frozen=True)
class Grant:
    """The right to make ids with one machine id in the milliseconds (since 1970) from_ms ≤ ms < until_ms."""

    machine_id: int
    from_ms: int
    until_ms: int
    first_sequence: int = 0


class IdSource(Protocol):
    """Issues grants to an `IdMaker`."""

    def grant(self, at_ms: int) -> Grant | None:
        """Return a grant that ends after at_ms and was never issued before; None if none is available now."""

    def forget(self) -> None:
        """Drop the held grants; called in a forked child, whose parent keeps them, and when the source is replaced."""


def wall_ms(clock: Clock) -> int:
    """Return the clock's wall time in milliseconds since 1970."""
    return int(clock.wall() * 1000)


def random_grant(from_ms: int) -> Grant:
    """Return a grant of a random machine id, which no source allotted.

    The random first sequence keeps two processes with the same machine id apart, as long as they make few ids.
    """
    draw = int.from_bytes(os.urandom(8), "big")
    machine_id = RANDOM_MACHINE_IDS[draw % len(RANDOM_MACHINE_IDS)]
    return Grant(machine_id, from_ms, from_ms + RANDOM_WINDOW_MS, first_sequence=(draw >> 32) % (SEQUENCES // 2))


class LocalSlots:
    """An IdSource for processes of one machine: each holds a lock on one file, which stores the end of its window.

    The file's name is the machine id. The system releases the lock when the process dies, and the next holder
    starts at the stored time.
    """

    def __init__(self, directory: Path, slots: range = ALLOTTED_MACHINE_IDS) -> None:
        self.directory = directory
        self._slots = slots
        self._fd: int | None = None
        self._slot = self._high_water_ms = 0
        self._window_ms = FIRST_WINDOW_MS

    def grant(self, at_ms: int) -> Grant | None:
        """Return a window on the held slot, stored before; None if no slot is free or the file cannot be written.

        Raise ConfigError if another user owns or may write the directory.
        """
        try:
            if self._fd is None and not self._take_slot(at_ms):
                return None
            return self._extend(at_ms)
        except OSError:
            self.forget()
            return None

    def forget(self) -> None:
        """Close the file; its lock is released when no process has it open."""
        if self._fd is not None:
            os.close(self._fd)
        self._fd = None
        self._window_ms = FIRST_WINDOW_MS

    def _extend(self, at_ms: int) -> Grant:
        assert self._fd is not None
        from_ms = self._high_water_ms
        until_ms = max(from_ms, at_ms) + self._window_ms
        os.pwrite(self._fd, b"%020d\n" % until_ms, 0)
        os.fsync(self._fd)
        self._high_water_ms = until_ms
        self._window_ms = min(2 * self._window_ms, WINDOW_MS)
        return Grant(self._slot, from_ms, until_ms)

    def _take_slot(self, at_ms: int) -> bool:
        """Lock a free slot, preferably one whose stored time has passed; return False if all are held."""
        self.directory.mkdir(mode=0o700, exist_ok=True)
        if (fault := fault_of(self.directory)) is not None:
            raise ConfigError(setting="machine_ids", value=str(self.directory), rule=fault.cause, hint=fault.hint)
        for high_water_ms_max in (at_ms, FAR_MS):
            if any(self._hold(slot, high_water_ms_max) for slot in self._candidates()):
                return True
        return False

    def _candidates(self) -> Iterator[int]:
        """Yield all slots, those that have a file first; each of the two parts begins at a random place."""
        names = set(os.listdir(self.directory))
        draw = int.from_bytes(os.urandom(4), "big")
        for known in (True, False):
            part = [slot for slot in self._slots if (_slot_name(slot) in names) is known]
            for place in range(len(part)):
                yield part[(draw + place) % len(part)]

    def _hold(self, slot: int, high_water_ms_max: int) -> bool:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(self.directory / _slot_name(slot), flags, 0o600)
        high_water_ms = _lock_and_read(fd)
        if high_water_ms is None or high_water_ms > high_water_ms_max:
            os.close(fd)
            return False
        self._fd, self._slot, self._high_water_ms = fd, slot, high_water_ms
        return True


def lend_slot(directory: Path, at_ms: int, length_ms: int) -> Grant | None:
    """Return a window from now on of a slot that no process holds, for a process elsewhere; None if there is none.

    Its end is stored, and the slot given back: whoever holds it next begins after that end.
    """
    slots = LocalSlots(directory)
    slots._window_ms = length_ms
    try:
        if not slots._take_slot(at_ms) or slots._high_water_ms > at_ms:  # all that are free are lent at present
            return None
        slots._high_water_ms = at_ms
        return slots._extend(at_ms)
    except OSError:
        return None
    finally:
        slots.forget()


def _slot_name(slot: int) -> str:
    return f"{slot:04d}"


def _lock_and_read(fd: int) -> int | None:
    """Return the stored time in milliseconds; None if another process holds the lock or the content is damaged."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    text = os.pread(fd, 64, 0)
    return int(text or 0) if re.fullmatch(rb"(?:[0-9]{20}\n)?", text) else None


class OfferedGrants:
    """An IdSource for state on a server: grants are offered from outside, as asking the server takes time."""

    def __init__(self) -> None:
        self._grants: deque[Grant] = deque()
        self.until_ms = 0

    def offer(self, grant: Grant) -> None:
        """Queue a grant; drop queued grants that end before it begins."""
        while self._grants and self._grants[0].until_ms <= grant.from_ms:
            self._grants.popleft()
        self._grants.append(grant)
        self.until_ms = max(self.until_ms, grant.until_ms)

    def grant(self, at_ms: int) -> Grant | None:
        """Return the next queued grant that ends after at_ms, and drop those before it; None if there is none."""
        while self._grants:
            grant = self._grants.popleft()
            if grant.until_ms > at_ms:
                return grant
        return None

    def forget(self) -> None:
        """Drop all queued grants."""
        self._grants.clear()
        self.until_ms = 0
