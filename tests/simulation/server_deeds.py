"""What happens to servers and on the way to them, and who asks them for what is not his."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING

from aaiclick.errors import NotAllowed
from aaiclick.orchestration.coordinator.http.client import HttpCoordinator
from aaiclick.orchestration.models import Done, Failure, Report
from tests.simulation.host import SkewedClock
from tests.simulation.network import Network

if TYPE_CHECKING:
    from tests.simulation.fate import Deed, Fate

LIVE = "SELECT task_id, epoch, worker_id FROM claims ORDER BY task_id"
WORKERS = """
SELECT w.id, n.name FROM workers w JOIN nodes n ON n.id = w.node_id WHERE w.status != 'stopped' ORDER BY w.id"""
FREED = "SELECT table_name FROM table_run_refs WHERE (task_id, epoch) = (?, ?) AND freed ORDER BY table_name"

PATIENCE_S = 20.0
"""After so long whoever meddles gives up."""

TELLING = ("report", "release", "let_go", "beat", "claim", "hold", "deregister", "register")
"""Requests that do something; most of all those of runs."""


class ServerDeeds:
    """Draws upon a network."""

    def __init__(self, fate: Fate, network: Network) -> None:
        self.fate, self.network, self.dice, self.world = fate, network, fate.dice, fate.world
        self._token = ""
        self._stranger = network.coordinator(fate.database.party, lambda: self._token, SkewedClock(fate.world))

    def rates(self) -> dict[Deed, float]:
        return {
            self.crash_server: 1.0,
            self.restart_server: 0.5,
            self.hang_server: 1.0,
            self.cut: 1.5,
            self.bring_again: 3.0,
            self.meddle: 2.0,
        }

    async def crash_server(self) -> None:
        live = self.network.live()
        if live:
            server = self.dice.choice(live)
            self.world.note(server.name, "is killed")
            server.die()

    async def restart_server(self) -> None:
        """It is told to end, answers whom it holds, and comes back."""
        live = self.network.live()
        if live:
            server = self.dice.choice(live)
            self.world.note(server.name, "is told to end")
            server.ending.set()
            self.world.loop.call_later(2.0, lambda: None if server.is_dead else server.die())

    async def hang_server(self) -> None:
        live = self.network.live()
        if live:
            server, seconds = self.dice.choice(live), self.dice.choice([1.0, 5.0, 15.0])
            self.world.note(server.name, f"hangs for {seconds:.1f} s")
            server.gate.shut()
            self.world.loop.call_later(seconds, lambda: None if server.is_dead else server.gate.open())

    async def cut(self) -> None:
        """A host reaches one of the servers no more, or none."""
        remote = [host for host in self.world.hosts if host.is_remote]
        if remote:
            host, seconds = self.dice.choice(remote), self.dice.choice([3.0, 10.0, 30.0])
            addresses = self.dice.choice([self.network.addresses, [self.dice.choice(self.network.addresses)]])
            self.world.note(host.name, f"is cut off from {len(addresses)} servers for {seconds:.1f} s")
            for address in addresses:
                self.network.cut_until[host.name, address] = self.world.loop.time() + seconds

    async def bring_again(self) -> None:
        """Something that was asked once arrives once more, after all that was asked since."""
        verb = self.dice.choice(TELLING)
        sent = [exchange for exchange in self.network.sent if exchange.verb == verb] or self.network.sent
        if sent:
            self.network.bring_late(self.dice.choice(sent))

    # ------------------------------------------------------------ who meddles

    async def meddle(self) -> None:
        """A node asks about runs of others: of another node's worker in its name, or of a worker beside its own."""
        live = self.world.state.rows(LIVE)
        if live:
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    await self._ask_about(*self.dice.choice(live))

    async def _ask_about(self, task: int, epoch: int, worker: int) -> None:
        own = [row for row in self.world.state.rows(WORKERS) if row[0] != worker]
        if own and self.dice.random() < 0.6:
            mine, home = self.dice.choice(own)
            self._token = await self.network.token_for(home)
            await self._ask_beside(self._stranger, mine, (task, epoch))
        else:
            self._token = await self.network.token_for("node-of-a-stranger")
            await self._ask_as_another(self._stranger, worker, (task, epoch))

    async def _ask_beside(self, stranger: HttpCoordinator, mine: int, run: tuple[int, int]) -> None:
        """With a worker of its own, about the run of another."""
        said: list[Report] = [Failure(*run, "ValueError: no"), Done(*run, _made_up(run))]
        before = self.world.state.rows(FREED, *run)
        if self.dice.random() < 0.4:
            await stranger.let_go(mine, [run])
        else:
            receipt = await stranger.report(mine, [self.dice.choice(said)])
            if receipt.accepted or receipt.conflicts:
                self.world.fail(f"a worker speaks of its own runs: {run} is not of {mine}")
        is_live = self.world.state.rows("SELECT 1 FROM claims WHERE (task_id, epoch) = (?, ?)", *run)
        if is_live and self.world.state.rows(FREED, *run) != before:
            self.world.fail(f"a worker frees what its own runs hold: {run} is not of {mine}")

    async def _ask_as_another(self, stranger: HttpCoordinator, worker: int, run: tuple[int, int]) -> None:
        try:
            await stranger.report(worker, [Done(*run, _made_up(run))])
        except NotAllowed:
            return
        self.world.fail(f"a node speaks for its own workers: a stranger has reported {run} for {worker}")


def _made_up(run: tuple[int, int]) -> str:
    return json.dumps({"task": run[0], "epoch": run[1], "worker": 0})
