"""The runs that a worker holds: written by the worker's loop, read by the heartbeat, which runs on another thread."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

from aaiclick.orchestration.models import Claim, Done, Held, Report

Key = tuple[int, int]
"""A run: (task, epoch)."""

LONG_S = 1.0
"""A heartbeat reports a run as started only this long after its claim. Shorter runs only report their end."""


@dataclass(slots=True)
class Holding:
    """One run, from its claim until its report is acknowledged."""

    claim: Claim
    since: float
    log_path: str | None = None
    begun: bool = False
    ended_at: float | None = None
    """When its body ended, by this process's monotonic clock; None while it runs."""
    told: bool = False
    tables: bool = False
    """Whether it may have created tables."""

    @property
    def ended(self) -> bool:
        """Whether its body has ended, so that only its report is outstanding."""
        return self.ended_at is not None


@dataclass(slots=True)
class Picture:
    """The content of a heartbeat."""

    known_call: int
    held: list[Held]
    unreported_s: float = 0.0
    """The seconds since the end of the oldest run whose report is not acknowledged."""


@dataclass(slots=True)
class Holdings:
    """All runs that one session holds, with the counts of ended runs for the next heartbeat."""

    known_call: int = 0
    heard_at: float = float("-inf")
    """When a heartbeat was last answered, by this process's monotonic clock."""
    _runs: dict[Key, Holding] = field(default_factory=dict)
    _completed: int = 0
    _failed: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answered(self, call: int, claims: Iterable[Claim], now: float) -> None:
        """Add the claims of claim call `call`. If its answer was lost, pass none: the next heartbeat releases them."""
        with self._lock:
            for claim in claims:
                self._runs[claim.task_id, claim.epoch] = Holding(claim, now, tables=claim.registered)
            self.known_call = call

    def begun(self, key: Key, log_path: str | None) -> None:
        """Note that the body of this run begins."""
        run = self._runs.get(key)
        if run is not None:
            run.log_path, run.begun = log_path, True

    def uses_tables(self, key: Key) -> None:
        """Note that this run is about to create tables, so that its report says so."""
        run = self._runs.get(key)
        if run is not None:
            run.tables = True

    def holds_tables(self, key: Key) -> bool:
        """Return whether this run may have created tables."""
        run = self._runs.get(key)
        return run is not None and run.tables

    def ended(self, key: Key, now: float) -> None:
        """Note that the body of this run has ended."""
        run = self._runs.get(key)
        if run is not None:
            run.ended_at = now

    def acknowledged(self, reports: Iterable[Report]) -> None:
        """Remove the runs of these acknowledged reports, and count them."""
        with self._lock:
            for report in reports:
                if self._runs.pop((report.task_id, report.epoch), None) is not None:
                    if isinstance(report, Done):
                        self._completed += 1
                    else:
                        self._failed += 1

    def drop(self, keys: Iterable[Key]) -> None:
        """Remove these runs without counting them."""
        with self._lock:
            for key in keys:
                self._runs.pop(key, None)

    def picture(self, now: float) -> Picture:
        """Return a consistent snapshot: the runs that are held, and the last claim call whose answer is known."""
        with self._lock:
            held = [
                Held(key[0], key[1], run.begun and not run.told and now - run.since >= LONG_S, run.log_path)
                for key, run in self._runs.items()
            ]
            return Picture(self.known_call, held, self._unreported_s(now))

    def unreported_s(self, now: float) -> float:
        """Return the seconds since the end of the oldest run whose report is not acknowledged; 0 if there is none."""
        with self._lock:
            return self._unreported_s(now)

    def _unreported_s(self, now: float) -> float:
        return max((now - run.ended_at for run in self._runs.values() if run.ended_at is not None), default=0.0)

    def take_counts(self) -> tuple[int, int]:
        """Return and reset the counts of completed and failed runs. The caller must report them, or put them back."""
        with self._lock:
            taken, self._completed, self._failed = (self._completed, self._failed), 0, 0
            return taken

    def count(self, completed: int, failed: int) -> None:
        """Put back counts that could not be reported."""
        with self._lock:
            self._completed += completed
            self._failed += failed

    def told(self, picture: Picture, now: float) -> None:
        """Note that a heartbeat with this picture was answered."""
        with self._lock:
            self.heard_at = now
            for run in picture.held:
                if run.started and (run.task_id, run.epoch) in self._runs:
                    self._runs[run.task_id, run.epoch].told = True

    def unfinished(self) -> list[Holding]:
        """Return the runs whose bodies have not ended, including those that have not begun."""
        with self._lock:
            return [run for run in self._runs.values() if not run.ended]

    def owing(self) -> bool:
        """Return whether a run has ended and its report is not acknowledged."""
        with self._lock:
            return any(run.ended for run in self._runs.values())

    def __len__(self) -> int:
        return len(self._runs)
