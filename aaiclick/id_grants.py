"""Grants: the right to make ids of one machine id in a window of time, and who gives it.

No window is granted twice: its end is stored before it is used. See ids.py for the whole picture.
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
"""What a process has reserved when it is killed stays reserved: the next holder of its slot begins after that."""

FIRST_WINDOW_MS = 50
"""Each window is twice the one before: processes that follow each other on one slot do not run ahead."""

RANDOM_WINDOW_MS = 10_000
"""How long a random machine id is used before the source is asked again."""


@dataclass(frozen=True)
class Grant:
    """The right to make ids of one machine id in the milliseconds (since 1970) from_ms ≤ ms < until_ms."""

    machine_id: int
    from_ms: int
    until_ms: int
    first_sequence: int = 0


class IdSource(Protocol):
    """Where grants come from."""

    def grant(self, at_ms: int) -> Grant | None:
        """A grant that reaches beyond at_ms, never given before; None if there is none at hand."""

    def forget(self) -> None:
        """Give up what a parent process holds; called in a forked child."""


def wall_ms(clock: Clock) -> int:
    """Milliseconds since 1970."""
    return int(clock.wall() * 1000)


def random_grant(from_ms: int) -> Grant:
    """A machine id that nobody allotted.

    The random sequence sets two processes apart that drew the same machine id, as long as they make few ids.
    """
    draw = int.from_bytes(os.urandom(8), "big")
    machine_id = RANDOM_MACHINE_IDS[draw % len(RANDOM_MACHINE_IDS)]
    return Grant(machine_id, from_ms, from_ms + RANDOM_WINDOW_MS, first_sequence=(draw >> 32) % (SEQUENCES // 2))


class LocalSlots:
    """Machine ids on one machine: each live process holds the lock of one file, which stores how far it may count.

    The system releases the lock when the process dies. The next holder starts where the stored time ends.
    """

    def __init__(self, directory: Path, slots: range = ALLOTTED_MACHINE_IDS) -> None:
        self.directory = directory
        self._slots = slots
        self._fd: int | None = None
        self._slot = self._high_water_ms = 0
        self._window_ms = FIRST_WINDOW_MS

    def grant(self, at_ms: int) -> Grant | None:
        """A window on the held slot, stored before it is returned; None if no slot is free or the disk refuses."""
        try:
            if self._fd is None and not self._take_slot(at_ms):
                return None
            return self._extend(at_ms)
        except OSError:
            self.forget()
            return None

    def forget(self) -> None:
        """Close the file; its lock is released when no process has it open any more."""
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
        """Hold a free slot, if possible one whose stored time has passed."""
        self.directory.mkdir(mode=0o700, exist_ok=True)
        if (fault := fault_of(self.directory)) is not None:
            raise ConfigError(setting="machine_ids", value=str(self.directory), rule=fault.cause, hint=fault.hint)
        for high_water_ms_max in (at_ms, FAR_MS):
            if any(self._hold(slot, high_water_ms_max) for slot in self._candidates()):
                return True
        return False

    def _candidates(self) -> Iterator[int]:
        """All slots: those that have a file first, each part from a random start."""
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


def _slot_name(slot: int) -> str:
    return f"{slot:04d}"


def _lock_and_read(fd: int) -> int | None:
    """The stored time; None if another process holds the file, or if it was damaged."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    text = os.pread(fd, 64, 0)
    return int(text or 0) if re.fullmatch(rb"(?:[0-9]{20}\n)?", text) else None


class OfferedGrants:
    """Grants that the state's server allotted, offered from outside because asking a server takes its time."""

    def __init__(self) -> None:
        self._grants: deque[Grant] = deque()
        self.until_ms = 0

    def offer(self, grant: Grant) -> None:
        """Keep a grant for when it is needed; those that are over by then go."""
        while self._grants and self._grants[0].until_ms <= grant.from_ms:
            self._grants.popleft()
        self._grants.append(grant)
        self.until_ms = max(self.until_ms, grant.until_ms)

    def grant(self, at_ms: int) -> Grant | None:
        """The next one that reaches beyond at_ms."""
        while self._grants:
            grant = self._grants.popleft()
            if grant.until_ms > at_ms:
                return grant
        return None

    def forget(self) -> None:
        """Leave all to the parent."""
        self._grants.clear()
        self.until_ms = 0
