"""A simulated process without a database: worker and heart ask servers, as `worker start --coordinator` does."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from aaiclick.backoff import insist
from aaiclick.errors import AaiclickError
from aaiclick.id_grants import OfferedGrants
from aaiclick.ids import IdMaker
from aaiclick.orchestration.coordinator.contract import Coordinator
from aaiclick.orchestration.coordinator.http.client import HttpCoordinator
from aaiclick.orchestration.coordinator.http.protocol import HELD_S_MAX
from aaiclick.orchestration.execution.id_supply import keep_ids
from aaiclick.orchestration.launchers import worker_main
from tests.simulation.faulty import FaultyCoordinator
from tests.simulation.host import Host
from tests.simulation.places import NODES
from tests.simulation.state import Away
from tests.simulation.world import World


class RemoteHost(Host):
    """Two threads as well, each with connections of its own; the state is far away."""

    is_remote = True
    hold_s = HELD_S_MAX
    repeated = 0.0
    """The network below repeats requests by itself."""

    def __init__(self, world: World, number: int) -> None:
        self._http: list[HttpCoordinator] = []
        super().__init__(world, number)
        self.beating = FaultyCoordinator(world, self._direct(), repeated=self.repeated)
        self.ids = IdMaker(OfferedGrants(), clock=self.clock)
        """Of this process alone: it makes its ids from what servers grant it."""
        self.token = ""

    @property
    def node_name(self) -> str:
        described = self._node()
        return f"node-{self.number % NODES}" if described is None else described.name

    def _direct(self) -> Coordinator:
        assert self.world.network is not None
        made = self.world.network.coordinator(self, lambda: self.token, self.clock)
        self._http.append(made)
        return made

    async def _run(self) -> None:
        assert self.world.network is not None
        self.token = await self.world.network.token_for(self.node_name)
        await insist("the right to make ids", self._http[0].grant_ids, self.clock)
        hearing = asyncio.create_task(worker_main._hear(self._http[0], self.worker, self))  # type: ignore[arg-type]
        try:
            await self.worker.run()
        except Exception as error:
            super()._failed(error)
        finally:
            hearing.cancel()

    def _failed(self, error: BaseException) -> None:
        """A call of its worker may fail, which handles that; the worker may not."""
        if not isinstance(error, AaiclickError | Away):
            super()._failed(error)

    def _beside(self) -> Coroutine[Any, Any, None]:
        return keep_ids(self._http[1], self.clock)

    def hear(self, hint: str) -> None:
        """Hints come through servers."""

    def die(self) -> None:
        super().die()
        assert self.world.network is not None
        self.world.network.forget(self)
