"""What happens to a world: people submit, extend, clear and cancel jobs; machines crash, hang and come back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

from aaiclick.errors import AaiclickError
from aaiclick.orchestration.control.table_dropper import TableDropper
from aaiclick.orchestration.control.table_sweeper import TableSweeper
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.factories import new_job
from aaiclick.orchestration.store.retention.table_ages import mark_expired
from aaiclick.orchestration.store.workers import drain_worker
from tests.simulation.checks import AT_REST, broken
from tests.simulation.engine import left_over
from tests.simulation.faulty import Call, stale_beat
from tests.simulation.graphs import Graphs
from tests.simulation.host import Host
from tests.simulation.network import Network
from tests.simulation.places import Operator
from tests.simulation.promptness import Promptness
from tests.simulation.remote_hosts import RemoteHost
from tests.simulation.schedules import Schedules, missing
from tests.simulation.server_deeds import ServerDeeds
from tests.simulation.state import Away, SimulatedDatabase
from tests.simulation.world import World

JOBS_MAX = 4
NODES_MAX = 30
HOSTS_MAX = 4
CHAOS_S = (20.0, 80.0)
CALM_S_MAX = 200.0
"""How long after the last fault everything must have come to its end."""

Deed = Callable[[], Awaitable[object]]


class Client:
    """Someone with a console; a person does not crash, but loses answers."""

    name = "client"
    can_die = False
    distance = 1.0
    worker_id = None

    def die(self) -> None:
        """Never."""


class Fate:
    """Draws what happens next."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.dice = world.dice
        self.database = SimulatedDatabase(world, Client())
        self.people = DirectCoordinator(self.database, draw=world.dice.random)
        self.graphs = Graphs(world.dice, world.lanes, is_placed=world.weather.placed)
        self.born = 0
        self.everyone: list[Host] = []
        base: dict[Deed, float] = {
            self.submit: 1.5,
            self.extend: 2.0,
            self.clear: 3.0,
            self.cancel: 0.5,
            self.retry: 1.5,
            self.drain: 0.7,
            self.keep: 0.3,
            self.crash: 1.5,
            self.hang: 1.5,
            self.outage: 0.5,
            self.deafen: 1.0,
            self.more_hosts: 1.5,
            self.report_again: 3.0,
            self.claim_again: 1.0,
            self.beat_again: 1.0,
        }
        self.schedules = Schedules(self)
        if world.weather.schedules:
            base |= {self.schedules.switch: 1.5, self.schedules.set_back: 3.0}
        operator = Operator(self)
        if world.weather.placed:
            base |= {operator.close_or_open: 2.0, operator.empty: 0.5, operator.remove: 1.0}
        if world.weather.remote:
            world.network = Network(world)
            base |= ServerDeeds(self, world.network).rates()
        self.weights: dict[Deed, float] = {deed: rate * self.dice.choice([0, 1, 1, 3]) for deed, rate in base.items()}
        self.weights |= {deed: 5.0 for deed in base if deed.__name__ in world.weather.favours}
        self.weights |= {deed: 0.0 for deed in base if deed.__name__ in world.weather.spares}

    # ------------------------------------------------------------ the course of things

    async def run(self) -> None:
        """Chaos, then calm, in which everything must come to its end."""
        for _ in range(self.dice.choice([1, 2, 3])):
            await self.more_hosts()
        await self.try_to(self.submit)
        if self.world.weather.schedules:
            await self.try_to(self.schedules.register_entries)
        until = self.dice.uniform(*CHAOS_S)
        deeds, rates = list(self.weights), [*self.weights.values()]
        while self.world.loop.time() < until and not self.world.is_over:
            await asyncio.sleep(self.dice.expovariate(0.8))
            if any(rates):
                await self.try_to(self.dice.choices(deeds, rates)[0])
        await self.calm_down()

    async def try_to(self, deed: Deed) -> None:
        try:
            await deed()
            self.world.counts[deed.__name__] += 1
        except (AaiclickError, Away) as error:
            self.world.counts[f"{deed.__name__} failed"] += 1
            self.world.note("client", f"{deed.__name__}: {type(error).__name__}")

    async def calm_down(self) -> None:
        world = self.world
        world.is_calm, world.is_away = True, False
        world.note("fate", "calm from now on")
        if world.network is not None:
            world.network.heal()
        for host in self.everyone:
            host.worker.lanes = None if world.weather.placed else world.lanes
            host.go_on(host.work)
            host.go_on(host.service)
        await self.more_hosts(calm=True)
        if world.weather.schedules:
            await asyncio.sleep(65.0)  # a minute without faults
            await self.try_to(self.schedules.end)
        until = world.loop.time() + CALM_S_MAX
        prompt = Promptness(world)
        while left := [*broken(world.state, AT_REST), *still_held(world)]:
            if world.is_over:
                return
            if world.loop.time() > until:
                world.fail(f"everything ends: not after {CALM_S_MAX:.0f} s: {'; '.join(left)}")
                return
            for late in prompt.look() if world.network is not None and not world.weather.placed else ():
                world.fail(late)
            await self.more_hosts(calm=not world.hosts)
            await asyncio.sleep(1.0)
        for time in missing(world):
            world.fail(time)
        await clean_up(self, until)
        world.note("fate", "everything has ended")

    # ------------------------------------------------------------ people

    async def submit(self) -> None:
        number = len(self.graphs.nodes)
        if number >= JOBS_MAX:
            return
        options = {"fail_fast": self.dice.random() < 0.2, "timeout_s": self.dice.choice([None, None, None, 30.0])}
        job = new_job(f"job {number}", **options)  # type: ignore[arg-type]
        graph = self.graphs.begin(job.id, 10)
        graph.new_job = job
        await self.people.submit(graph)
        self.graphs.took(graph)

    async def extend(self) -> None:
        job_id = self._some_job()
        if job_id is not None and len(self.graphs.nodes[job_id]) < NODES_MAX:
            graph = self.graphs.grow(job_id, self.dice.choice([1, 3, 6]))
            await self.people.submit(graph)
            self.graphs.took(graph)

    def _some_job(self) -> int | None:
        jobs = sorted(self.graphs.nodes)
        return self.dice.choice(jobs) if jobs else None

    async def clear(self) -> None:
        tasks = self.world.state.ids("SELECT id FROM tasks ORDER BY id")
        if tasks:
            await self.people.clear(self.dice.choice(tasks), upstream=self.dice.random() < 0.5)

    async def cancel(self) -> None:
        job_id = self._some_job()
        if job_id is not None:
            await self.people.cancel(job_id)

    async def retry(self) -> None:
        job_id = self._some_job()
        if job_id is not None:
            await self.people.retry_failed(job_id)

    async def drain(self) -> None:
        workers = self.world.state.ids("SELECT id FROM workers ORDER BY id")
        if workers:
            worker = self.dice.choice(workers[-3:])
            await self.database.transact(lambda session: drain_worker(session, worker))

    async def keep(self) -> None:
        """Someone keeps a job for himself and is never heard of again."""
        job_id = self._some_job()
        if job_id is not None:
            nobody = await self.people.register(hostname="nowhere", pid=1)
            await self.people.reserve(job_id, nobody.id)

    # ------------------------------------------------------------ machines

    async def more_hosts(self, *, calm: bool = False) -> None:
        if calm or (len(self.world.hosts) < HOSTS_MAX and not self.world.is_calm):
            self.born += 1
            is_remote = self.world.weather.remote and self.dice.random() < self.world.weather.remote
            host = RemoteHost(self.world, self.born) if is_remote else Host(self.world, self.born)
            self.everyone.append(host)
            host.start()

    async def crash(self) -> None:
        if self.world.hosts:
            host = self.dice.choice(self.world.hosts)
            self.world.note(host.name, "is killed")
            host.die()

    async def hang(self) -> None:
        """For less than a session, about as long, or much longer; a thread alone, or both."""
        if self.world.hosts:
            host = self.dice.choice(self.world.hosts)
            both = [host.work, host.service]
            gates = self.dice.choice([both, both, [host.work], [host.service]])
            host.pause(gates, self.dice.choice([self.dice.uniform(1, 5), self.dice.uniform(8, 16), 30.0]))

    async def deafen(self) -> None:
        """Only the beats of a host are cut, for less than a session or longer."""
        if self.world.hosts:
            host, seconds = self.dice.choice(self.world.hosts), self.dice.choice([5.0, 15.0, 40.0])
            self.world.note(host.name, f"its beats are cut for {seconds:.1f} s")
            host.beating.deaf_until = self.world.loop.time() + seconds

    async def outage(self) -> None:
        world = self.world
        seconds = self.dice.choice([self.dice.uniform(1, 4), self.dice.uniform(6, 12), self.dice.uniform(15, 25)])
        world.note("fate", f"the database is away for {seconds:.1f} s")
        world.is_away = True
        await asyncio.sleep(seconds)
        world.is_away = False
        if seconds > world.history.session_s + 2:  # whoever waits for the term to end asks nothing for a while
            world.history.outage_until = world.now()
        world.note("fate", "the database is back")

    # ------------------------------------------------------------ the network

    async def report_again(self) -> None:
        """Something that was said once, by someone who may be dead, arrives late: when it hurts most, if it can."""
        live = dict(self.world.state.rows("SELECT id, epoch FROM tasks WHERE status IN ('claimed', 'running')"))
        said = self.world.sent
        stale = [call for call in said if any(live.get(each.task_id, each.epoch) != each.epoch for each in call[1])]
        if said:
            worker, reports = self.dice.choice(stale or said[-20:])
            receipt = await self.people.report(worker, reports)
            self.world.received(worker, reports, receipt)

    async def claim_again(self) -> None:
        said = [call for host in self.everyone for call in host.coordinator.claims]
        if said:
            worker, facts = of_the_dead_or_the_living(self.world, said)
            await self.people.claim(worker, **facts)

    async def beat_again(self) -> None:
        said = [call for host in self.everyone for call in host.beating.beats]
        if said:
            worker, facts = of_the_dead_or_the_living(self.world, said)
            await self.people.beat(worker, **stale_beat(facts))


def of_the_dead_or_the_living(world: World, said: list[Call]) -> Call:
    """A call that someone made whose session is over, or someone else."""
    stopped = set(world.state.ids("SELECT id FROM workers WHERE status = 'stopped'"))
    wanted = world.dice.random() < 0.5
    return world.dice.choice([call for call in said if (call[0] in stopped) == wanted] or said)


def still_held(world: World) -> Iterator[str]:
    """What workers hold that nobody else knows of."""
    for host in world.hosts:
        held = host.worker.holdings.picture(0.0).held
        if held:
            yield f"no worker holds what has ended: {host.name} {held}"


async def clean_up(fate: Fate, until: float) -> None:
    """The time of all jobs is over: no table is left, and nothing is known of any."""
    world = fate.world
    world.is_expired = True
    while left := list(left_over(world)):
        if world.is_over:
            return
        if world.loop.time() > until:
            world.fail(f"tables end: not after {CALM_S_MAX:.0f} s: {'; '.join(left)}")
            return
        await fate.more_hosts(calm=not world.hosts)
        await asyncio.sleep(1.0)
        await fate.database.transact(partial(mark_expired, ttl_s=0.5))
        await TableDropper(fate.database).drop_unneeded()
        await TableSweeper(fate.database).sweep()
