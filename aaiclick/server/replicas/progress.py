"""How far a replica is: up to which event, how old that is, and whether the coordinator answers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

from aaiclick.clock import SYSTEM_CLOCK, Clock, utc_now
from aaiclick.orchestration.queries.health import Check, Health
from aaiclick.orchestration.store.replicas.applying import ReplicaState
from aaiclick.orchestration.store.replicas.replicated import moment
from aaiclick.representations.health import ReplicaAnswer


@dataclass(slots=True)
class Counts:
    """What a replica has done since it was started."""

    calls: int = 0
    rows: int = 0
    pages: int = 0
    """Pages of tables that were read from the coordinator."""
    same_pages: int = 0
    """Pages that were the same here."""
    events: int = 0
    copies: int = 0
    """How often all tables were compared, from an empty file or not."""


class Progress:
    """The progress of one replica. The feeder writes it; all others read it, or wait for an event."""

    def __init__(self, coordinator: str, state: ReplicaState | None = None, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.coordinator = coordinator
        self.state = state or ReplicaState(coordinator)
        self.counts = Counts()
        self.trouble = "it was not asked yet"
        """Why the coordinator cannot be asked; nothing while it can."""
        self._clock = clock
        self._ahead_s = 0.0
        """By how much the coordinator's clock is ahead of this machine's."""
        self._moved = asyncio.Event()

    @property
    def is_whole(self) -> bool:
        """Whether the first copy is complete."""
        return self.state.is_whole

    @property
    def as_of_seq(self) -> int:
        """The newest event that is here with all that came before it."""
        return self.state.cursor

    def as_of(self) -> datetime:
        """Return the coordinator's time of which this is; what answers of a replica call now."""
        return moment(self.state.as_of) if self.state.as_of else utc_now(self._clock)

    @property
    def lag_ms(self) -> int:
        """How old what is here may be, in milliseconds."""
        if not self.state.as_of:
            return 0
        now = utc_now(self._clock) + timedelta(seconds=self._ahead_s)
        return max(0, int((now - self.as_of()).total_seconds() * 1000))

    def heard(self, now: str) -> None:
        """Note that the coordinator has answered, with its time."""
        self.trouble = ""
        self._ahead_s = (moment(now) - utc_now(self._clock)).total_seconds()

    def moved(self, state: ReplicaState) -> None:
        """Note a new state, and wake whoever waits for it."""
        self.state = state
        self._moved.set()
        self._moved = asyncio.Event()

    def told(self) -> ReplicaAnswer:
        """Return how far it is."""
        lag_ms = self.lag_ms if self.is_whole else None
        seq = str(self.as_of_seq)
        return ReplicaAnswer(coordinator=self.coordinator, is_whole=self.is_whole, as_of_seq=seq, lag_ms=lag_ms)

    def health(self) -> Health:
        """Return two checks: of what is here, and of the coordinator."""
        if self.is_whole:
            detail = f"a copy of {self.coordinator} as of event {self.as_of_seq}, {self.lag_ms} ms old"
        else:
            detail = f"the first copy of {self.coordinator} is at {self.state.looking or 'its beginning'}"
        away = f"cannot be asked: {self.trouble}"
        hint = "Check that its server runs, and the address and the token." if self.trouble else ""
        return Health(
            [
                Check("replica", self.is_whole, detail),
                Check("coordinator", not self.trouble, away if self.trouble else "answers", hint),
            ]
        )

    def metrics(self) -> str:
        """Return the numbers of the replica in the text format of Prometheus."""
        found = {
            "as_of_seq gauge": (self.as_of_seq, "The newest event that is here with all before it."),
            "lag_seconds gauge": (self.lag_ms / 1000, "How old what is here may be."),
            "connected gauge": (int(not self.trouble), "Whether the coordinator answers."),
            "events_total counter": (self.counts.events, "Events that were taken over."),
            "rows_total counter": (self.counts.rows, "Rows that were copied in pages."),
            "copies_total counter": (self.counts.copies, "Times that all tables were compared."),
        }
        lines = []
        for named, (value, words) in found.items():
            name, kind = f"aaiclick_replica_{named.split()[0]}", named.split()[1]
            lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}", f"{name} {value}"]
        return "\n".join([*lines, ""])

    async def reaches(self, seq: int, wait_s: float) -> bool:
        """Return whether an event is here, or comes here in time."""
        try:
            async with asyncio.timeout(wait_s):
                while self.as_of_seq < seq or not self.state.is_whole:
                    await self._moved.wait()
        except TimeoutError:
            return False
        return True
