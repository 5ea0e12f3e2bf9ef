"""The runs that a worker holds: written by its loop, read by its heart, which beats on a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

from aaiclick.orchestration.models import Claim, Done, Held, Report

Key = tuple[int, int]
"""A run: (task, epoch)."""

LONG_S = 1.0
"""A run that has taken so long is seen to run; for shorter ones, start and end are one."""


@dataclass(slots=True)
class Holding:
    """One run, from its claim until its report is acknowledged."""

    claim: Claim
    since: float
    log_path: str | None = None
    begun: bool = False
    ended_at: float | None = None
    """When its body was over, by this process's clock."""
    told: bool = False
    tables: bool = False
    """Whether it uses tables."""

    @property
    def ended(self) -> bool:
        """Whether its body is over, and its report on its way."""
        return self.ended_at is not None


@dataclass(slots=True)
class Picture:
    """What a heartbeat says."""

    known_call: int
    held: list[Held]
    unreported_s: float = 0.0
    """For how long the oldest run that is over has not been reported."""


@dataclass(slots=True)
class Holdings:
    """All runs of one session."""

    known_call: int = 0
    heard_at: float = float("-inf")
    """When the state last heard of this session, by this process's clock."""
    _runs: dict[Key, Holding] = field(default_factory=dict)
    _completed: int = 0
    _failed: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answered(self, call: int, claims: Iterable[Claim], now: float) -> None:
        """Claim call `call` gave these; nothing, if its answer was lost: then what it took will be given back."""
        with self._lock:
            for claim in claims:
                self._runs[claim.task_id, claim.epoch] = Holding(claim, now, tables=claim.registered)
            self.known_call = call

    def begun(self, key: Key, log_path: str | None) -> None:
        """The body of this run begins."""
        run = self._runs.get(key)
        if run is not None:
            run.log_path, run.begun = log_path, True

    def uses_tables(self, key: Key) -> None:
        """This run is about to use tables: whoever says that it is over says that too."""
        run = self._runs.get(key)
        if run is not None:
            run.tables = True

    def holds_tables(self, key: Key) -> bool:
        """Whether this run may have used tables."""
        run = self._runs.get(key)
        return run is not None and run.tables

    def ended(self, key: Key, now: float) -> None:
        """The body of this run is over; its report is on its way."""
        run = self._runs.get(key)
        if run is not None:
            run.ended_at = now

    def acknowledged(self, reports: Iterable[Report]) -> None:
        """The state has answered these reports."""
        with self._lock:
            for report in reports:
                if self._runs.pop((report.task_id, report.epoch), None) is not None:
                    if isinstance(report, Done):
                        self._completed += 1
                    else:
                        self._failed += 1

    def drop(self, keys: Iterable[Key]) -> None:
        """These runs are nobody's business any more."""
        with self._lock:
            for key in keys:
                self._runs.pop(key, None)

    def picture(self, now: float) -> Picture:
        """What is held at this instant, with the last call whose answer is known."""
        with self._lock:
            held = [
                Held(key[0], key[1], run.begun and not run.told and now - run.since >= LONG_S, run.log_path)
                for key, run in self._runs.items()
            ]
            return Picture(self.known_call, held, self._unreported_s(now))

    def unreported_s(self, now: float) -> float:
        """For how long the oldest run that is over has not been reported; 0 if none is."""
        with self._lock:
            return self._unreported_s(now)

    def _unreported_s(self, now: float) -> float:
        return max((now - run.ended_at for run in self._runs.values() if run.ended_at is not None), default=0.0)

    def take_counts(self) -> tuple[int, int]:
        """How many completed and failed since this was asked last: whoever asks is to tell it."""
        with self._lock:
            taken, self._completed, self._failed = (self._completed, self._failed), 0, 0
            return taken

    def count(self, completed: int, failed: int) -> None:
        """So many more completed and failed; or they could not be told."""
        with self._lock:
            self._completed += completed
            self._failed += failed

    def told(self, picture: Picture, now: float) -> None:
        """The state has heard this picture."""
        with self._lock:
            self.heard_at = now
            for run in picture.held:
                if run.started and (run.task_id, run.epoch) in self._runs:
                    self._runs[run.task_id, run.epoch].told = True

    def unfinished(self) -> list[Holding]:
        """Runs whose bodies go on."""
        with self._lock:
            return [run for run in self._runs.values() if not run.ended]

    def owing(self) -> bool:
        """Whether a run has ended and its report is not acknowledged."""
        with self._lock:
            return any(run.ended for run in self._runs.values())

    def __len__(self) -> int:
        return len(self._runs)
