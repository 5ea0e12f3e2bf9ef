"""What must hold of the answers that servers give, beside what must hold of the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aaiclick.orchestration.coordinator.http.protocol import (
    GZIP,
    MSGPACK,
    Claimed,
    ClaimTasks,
    GrantedIds,
    read,
    unpacked,
)

if TYPE_CHECKING:
    from tests.simulation.servers import Exchange
    from tests.simulation.world import World

OF_CALL = "SELECT task_id, epoch FROM claims WHERE worker_id = ? AND claim_call = ?"


class Door:
    """Stands where requests enter and answers leave."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._before: dict[Exchange, set[tuple[int, int]]] = {}
        """What the same call had claimed when it was made again."""
        self._windows: list[tuple[int, int, int]] = []

    def came(self, exchange: Exchange) -> None:
        if exchange.verb == "claim":
            self._before[exchange] = self._of_call(exchange.asked(ClaimTasks))

    def answered(self, exchange: Exchange) -> None:
        """Look at an answer that is on its way to whoever asked."""
        before, answer = self._before.pop(exchange, set()), exchange.answer.result()
        if answer is None or answer.status != 200 or self.world.is_over:
            return
        body = unpacked(answer.body) if answer.headers.get("content-encoding") == GZIP else answer.body
        if exchange.verb == "claim":
            self._claimed(exchange.asked(ClaimTasks), before, read(body, MSGPACK, Claimed))
        elif exchange.verb == "ids":
            self._granted(read(body, MSGPACK, GrantedIds))

    def _of_call(self, asked: ClaimTasks) -> set[tuple[int, int]]:
        return {tuple(row) for row in self.world.state.rows(OF_CALL, asked.worker, asked.call)}

    def _claimed(self, asked: ClaimTasks, before: set[tuple[int, int]], told: Claimed) -> None:
        """Whoever asks again is told what was claimed for it before, and still is."""
        named = {(claim.task_id, claim.epoch) for claim in told.claims}
        if missing := (before & self._of_call(asked)) - named:
            self.world.fail(f"a call that is made again finds its claims: {missing} of worker {asked.worker}")
        self.world.counts["claims found"] += bool(before & named)

    def _granted(self, told: GrantedIds) -> None:
        """Nobody may make the ids that somebody else may make."""
        if told.machine_id is None:
            return
        for machine, begin, end in self._windows:
            if machine == told.machine_id and begin < told.until_ms and told.from_ms < end:
                self.world.fail(f"ids are granted once: machine {machine} from {told.from_ms}, granted until {end}")
        self._windows.append((told.machine_id, told.from_ms, told.until_ms))
