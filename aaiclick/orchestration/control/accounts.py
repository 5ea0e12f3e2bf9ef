"""Counts of each reconciler: runs, work done, seconds, failures. Kept in memory and stored now and then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from aaiclick.backoff import said
from aaiclick.clock import Clock
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.leases import reconcilers as store
from aaiclick.orchestration.store.leases.reconcilers import TROUBLE_LENGTH_MAX, Account
from aaiclick.telemetry.masks import mask_text


@dataclass(frozen=True, slots=True)
class _Runs:
    """Counts of one reconciler since the last write. Times are those of this process's monotonic clock."""

    number: int = 0
    done: int = 0
    failures: int = 0
    seconds: float = 0.0
    ended_at: float = 0.0
    trouble: str | None = None
    failed_at: float | None = None


class Accounts:
    """The counts of all reconcilers of one process.

    The leader writes totals, not increments: at the beginning of a term it reads the stored totals and adds to them.
    """

    def __init__(self, database: Database, names: Sequence[str], clock: Clock) -> None:
        self.database = database
        self.names = sorted(names)
        self.clock = clock
        self._new: dict[str, _Runs] = {}
        self._written: dict[str, Account] = {}
        self._term: int | None = None

    def note(self, name: str, done: int, seconds: float, error: Exception | None = None) -> None:
        """Count one run, which did `done` pieces of work in `seconds`, or failed with `error`."""
        runs, now = self._new.get(name, _Runs()), self.clock.monotonic()
        runs = replace(runs, number=runs.number + 1, done=runs.done + done, seconds=runs.seconds + seconds)
        if error is not None:
            runs = replace(runs, failures=runs.failures + 1, trouble=_storable(error), failed_at=now)
        self._new[name] = replace(runs, ended_at=now)

    async def write(self, term: int) -> int:
        """Write the totals of the reconcilers that ran since the last call, and return how many these are.

        Rows that carry a later term stay unchanged.
        """
        if term != self._term:
            self._written = await self.database.transact(partial(store.take_over, term=term, names=self.names))
            self._term = term
        now = self.clock.monotonic()
        accounts = {name: self._account(name, runs, now) for name, runs in self._new.items()}
        if accounts:
            await self.database.transact(partial(store.write, term=term, accounts=accounts))
        self._written |= accounts
        self._new.clear()
        return len(accounts)

    def _account(self, name: str, runs: _Runs, now: float) -> Account:
        before = self._written.get(name, Account())
        return Account(
            runs=before.runs + runs.number,
            done=before.done + runs.done,
            failures=before.failures + runs.failures,
            seconds=before.seconds + runs.seconds,
            ran_s_ago=now - runs.ended_at,
            trouble=runs.trouble,
            trouble_s_ago=None if runs.failed_at is None else now - runs.failed_at,
        )


def _storable(error: Exception) -> str:
    masked = mask_text(said(error)).replace("\x00", "\\x00")
    return masked.encode("utf-8", "backslashreplace").decode()[:TROUBLE_LENGTH_MAX]
