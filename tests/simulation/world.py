"""One simulated world: its time, its dice, its trace, and what goes wrong in it."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from aaiclick.config import settings
from aaiclick.orchestration.models import Claim, Receipt, Report
from tests.simulation.checks import ALWAYS, ON_CHANGES, History, broken, recount, written
from tests.simulation.engine import Engine, lacking
from tests.simulation.loop import VirtualLoop
from tests.simulation.places import misplaced
from tests.simulation.state import Dialect, State

if TYPE_CHECKING:
    from tests.simulation.bodies import Body
    from tests.simulation.fate import Fate
    from tests.simulation.host import Host
    from tests.simulation.network import Network

BEGINNING = datetime(2026, 6, 1, 12, tzinfo=UTC)

UNKNOWN = """
SELECT r.outcome FROM runs r JOIN tasks t ON t.id = r.task_id
WHERE (r.task_id, r.epoch, r.worker_id) = (?, ?, ?) AND NOT r.late"""
"""A run that told something, or should have been noted as late."""

FAULTS = {"crash": 0.002, "lost": 0.008}
"""How likely each is in each way of each call, before a seed's own measure."""


SLOWNESS_MAX = 3.0
"""With servers: a call over the network costs several calls of the server, which all take their time."""


class Party(Protocol):
    """Someone who calls the database."""

    name: str
    can_die: bool
    distance: float
    """How long its calls take, compared with others."""

    @property
    def worker_id(self) -> int | None:
        """The worker's session that this is, if any."""

    def die(self) -> None:
        """Take not one more step."""


@dataclass(frozen=True)
class Weather:
    """What a seed would draw for itself, unless it is given."""

    slowness: float | None = None
    """How much longer than usual calls are on their way."""
    zealous: bool | None = None
    """Whether some hosts lead without asking for the term."""
    lossy: float | None = None
    """How much more often than usual calls and answers are lost."""
    favours: tuple[str, ...] = ()
    """What happens more often than it would."""
    spares: tuple[str, ...] = ()
    """What does not happen."""
    schedules: bool = False
    """Whether there are registered jobs, which fire each minute."""
    lanes: bool = False
    """Whether tasks stand in several lanes, of which most hosts serve some."""
    placed: bool = False
    """Whether tasks say where they may run, hosts are of nodes that have this or that, and nodes are closed."""
    remote: float = 0.0
    """How many of the hosts have no database, and work through a server; if any do, there are servers."""


class World:
    """What all parties share."""

    def __init__(self, seed: int, loop: VirtualLoop, weather: Weather) -> None:
        self.seed = seed
        self.weather = weather
        self.loop = loop
        self.dice = random.Random(seed)
        self.state = State()
        self.dialect = Dialect(time=self.now)
        self.history = History(settings().session_s)
        self.fate: Fate | None = None
        self.hosts: list[Host] = []
        self.trace: list[str] = []
        self.counts: Counter[str] = Counter()
        self.violations: list[str] = []
        self.failed: asyncio.Future[None] = loop.create_future()
        self.sent: list[tuple[int, Sequence[Report]]] = []
        """Every report that was ever sent, by any worker: the network may bring any of them again."""
        self.bodies: dict[int, list[Body]] = {}
        """Those that were begun, of each task."""
        self.begun: set[tuple[int, int]] = set()
        self.network: Network | None = None
        """Between hosts and servers, if there are any."""
        self.is_calm = False
        self.is_away = False
        self.is_over = False
        self.is_expired = False
        """Whether the time of all jobs is over."""
        self.lanes = self.state.intern(("{}", "gpu", "zone") if weather.lanes else ("{}",))
        self.engine = Engine(self)
        self.measure = {fault: self.dice.choice([0.0, 0.5, 1.0, 4.0]) for fault in FAULTS}
        if weather.lossy is not None:
            self.measure["lost"] = weather.lossy
        slowness, zealous = self.dice.choice([0.2, 1.0, 3.0, 8.0]), self.dice.random() < 0.5
        self.slowness = slowness if weather.slowness is None else weather.slowness
        if weather.remote and weather.slowness is None:
            self.slowness = min(self.slowness, SLOWNESS_MAX)
        self.zealous = zealous if weather.zealous is None else weather.zealous
        self._seen_event = 0

    def now(self) -> datetime:
        """The database's time."""
        return BEGINNING + timedelta(seconds=self.loop.time())

    # ------------------------------------------------------------ faults

    def latency_s(self) -> float:
        """How long a call or its answer is on its way."""
        kind = self.dice.random() / self.slowness
        if kind < 0.01:
            return self.dice.uniform(0.5, 2.5)
        return self.dice.uniform(0.02, 0.5) if kind < 0.1 else self.dice.uniform(0.0005, 0.02)

    def draw_fault(self, party: Party) -> str | None:
        if self.is_calm:
            return None
        kind = self.dice.random()
        for fault, rate in FAULTS.items():
            rate *= self.measure[fault]
            if kind < rate:
                return fault if party.can_die or fault != "crash" else None
            kind -= rate
        return None

    def spread(self, hints: Sequence[str]) -> None:
        """Hints come late, twice or never."""
        for host in self.hosts:
            for hint in hints:
                for _ in range(self.dice.choice([0, 1, 1, 1, 2])):
                    self.loop.call_later(self.dice.uniform(0, 0.3), host.hear, hint)
        if self.network is not None:
            self.network.spread(hints)

    # ------------------------------------------------------------ what is seen

    def note(self, who: str, what: str) -> None:
        self.trace.append(f"{self.loop.time():9.3f} {who:8} {what}")

    def fail(self, what: str) -> None:
        """Something that must hold does not."""
        self.violations.append(what)
        self.note("CHECK", what)
        self.is_over = True
        if not self.failed.done():
            self.failed.set_result(None)

    @contextmanager
    def watched(self, party: Party, what: str, refusals: tuple[type[Exception], ...]) -> Iterator[None]:
        """Whatever the store raises, other than to refuse, is a fault of its own."""
        try:
            yield
        except refusals as error:
            self.note(party.name, f"{what} refused: {error}")
            raise
        except Exception as error:
            self.fail(f"unexpected error in {what} of {party.name}: {type(error).__name__}: {error}")
            raise

    def committed(self, party: Party, what: str, asked: float) -> None:
        """Note a commit, asked for at that time, with the moves it made, and check all that must hold."""
        if self.is_over:
            return
        self.counts["commits"] += 1
        events = self.state.rows("SELECT * FROM events WHERE id > ? ORDER BY id", self._seen_event)
        moves = [_told(event) for event in events]
        if events:
            self._seen_event = events[-1][0]
        self.note(party.name, f"{what} {', '.join(moves)}")
        for move in events:
            self.counts[move[4]] += 1
        if self.weather.placed:
            for found in misplaced(self.state, events):
                self.fail(f"{found} (after {what} of {party.name})")
        for found in self._broken(party, self.loop.time() - asked):
            self.fail(f"{found} (after {what} of {party.name})")

    def _broken(self, party: Party, waited_s: float) -> Iterator[str]:
        now = self.now()
        times = {"now": written(now), "latest": written(now + timedelta(seconds=self.history.session_s))}
        yield from broken(self.state, ALWAYS, times)
        yield from self.history.compare_sessions(self.state, party.worker_id, now, waited_s)
        yield from self.history.compare_terms(self.state)
        yield from self._outlasting(now)
        if self.state.is_changed:
            self.state.is_changed = False
            yield from broken(self.state, ON_CHANGES)
            yield from self.history.compare_tasks(self.state)
            yield from recount(self.state)
            yield from lacking(self)

    def _outlasting(self, now: datetime) -> Iterator[str]:
        """Workers that let bodies run for longer than their sessions last by the database's time, and such bodies."""
        for host in self.hosts:
            renewed = self.history.renewed.get(host.worker.id)
            kill_s = host.worker.cutoff.kill_at - host.clock.monotonic()
            if renewed is not None and now + timedelta(seconds=kill_s - self.history.session_s) > renewed:
                yield f"no worker believes in its session for too long: {host.name}, for {kill_s:.1f} s from now on"
        for bodies in self.bodies.values():
            for body in bodies:
                worker, until = body.claim.worker_id, now - timedelta(seconds=self.history.session_s)
                if self.history.renewed.get(worker, now) < until and body.claim.stop_when_cut_off and body.is_alive:
                    yield f"no body outlasts its session: {body.claim} on {body.host.name}"

    def begins(self, body: Body) -> None:
        """No other body of the task may be alive, unless someone asked for that: cleared it, or let it finish."""
        task = body.claim.task_id
        if (task, body.claim.epoch) in self.begun:
            self.fail(f"a run is executed once: {body.claim} on {body.host.name}")
        self.begun.add((task, body.claim.epoch))
        for other in self.bodies.get(task, []):
            key = (task, other.claim.epoch)
            lost = self.state.rows("SELECT 1 FROM runs WHERE (task_id, epoch) = (?, ?) AND outcome = 'lost'", *key)
            if lost and other.is_alive:
                if other.claim.stop_when_cut_off:
                    self.fail(f"no two bodies at a time: {key} on {other.host.name}, {body.claim} on {body.host.name}")
                self.counts["finishes although cut off"] += 1
        self.bodies[task] = [*(each for each in self.bodies.get(task, []) if each.is_alive), body]

    def claimed(self, claims: Sequence[Claim], lanes: Sequence[int] | None) -> None:
        """Nobody is given a task of a lane that it does not serve."""
        for claim in claims if not self.is_over and lanes is not None else ():
            for lane in self.state.ids("SELECT lane FROM tasks WHERE id = ?", claim.task_id):
                self.counts[f"claimed in lane {lane}"] += 1
                if lanes is not None and lane not in lanes:
                    self.fail(f"a worker serves its lanes: {claim} of lane {lane} was given to one of {list(lanes)}")

    def received(self, worker: int, reports: Sequence[Report], receipt: Receipt) -> None:
        """A report that was accepted has its run in the history, with this worker and no other outcome.

        One that was refused is known to be late, if its run was this worker's; and no run says two things.
        """
        for run in receipt.conflicts if not self.is_over else ():
            self.fail(f"a run says one thing: {run} of worker {worker} has told another")
        for report in reports:
            key = (report.task_id, report.epoch)
            if key in receipt.accepted and not self.is_over:
                outcomes = self.state.rows("SELECT worker_id, outcome FROM runs WHERE (task_id, epoch) = (?, ?)", *key)
                fitting = ("completed",) if hasattr(report, "result_json") else ("failed", "crashed")
                if [(worker, fit) for fit in fitting if (worker, fit) in outcomes] == []:
                    self.fail(f"what is accepted has happened: {report} of worker {worker}, history {outcomes}")
            elif key not in receipt.accepted:
                self.counts["late reports refused"] += 1
                if not self.is_over and self.state.rows(UNKNOWN, *key, worker):
                    self.fail(f"what came late is known: {report} of worker {worker}")

    def digest(self) -> str:
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()


def _told(event: Any) -> str:
    _, job_id, task_id, epoch, move, *_ = event
    return f"job {job_id} {move}" if task_id is None else f"{task_id}#{epoch} {move}"
