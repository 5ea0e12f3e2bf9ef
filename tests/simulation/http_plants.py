"""Mistakes about workers without a database, to plant into the real code on both sides of the network."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import Any

from msgspec import structs

from aaiclick.errors import CoordinatorUnreachable
from aaiclick.id_grants import Grant
from aaiclick.orchestration.coordinator.claiming import Claiming
from aaiclick.orchestration.coordinator.http import calls, protocol
from aaiclick.orchestration.coordinator.http.client import HttpCoordinator
from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.models import Claim, Receipt, Report
from aaiclick.orchestration.store.leases.machine_ids import WINDOW_MS, now_ms
from aaiclick.server.node import held_claims, road, verbs
from aaiclick.server.node.rights import Rights
from tests.simulation.table_plants import Plant, Replacements


def claims_that_are_repeated_claim_anew() -> Replacements:
    """A server does not look for what the same call has claimed before."""

    async def find(self: Claiming, worker_id: int, call: int) -> list[Claim]:
        return []

    return [(Claiming, "find", find)]


def repeats_that_do_not_say_so() -> Replacements:
    """A client that makes a call once more makes it as if for the first time."""
    same = SimpleNamespace(structs=SimpleNamespace(replace=lambda asked, **_: asked))
    return [(calls, "msgspec", same)]


def repeated_reports_are_conflicts() -> Replacements:
    """A server remembers which reports it took, rather than what they said."""
    heard: set[tuple[int, int]] = set()

    async def report(desk: verbs.Desk, who: Any, asked: protocol.Reports) -> protocol.Receipted:
        told = await verbs._report(desk, who, asked)
        known = heard.intersection(told.accepted)
        heard.update(told.accepted)
        return structs.replace(told, accepted=[run for run in told.accepted if run not in known], conflicts=[*known])

    changed = {**verbs.VERBS, "report": verbs.VERBS["report"]._replace(answer=report)}
    return [(road, "VERBS", changed)]


def any_run_is_ones_own() -> Replacements:
    """Whoever has a worker may speak of the runs of all workers."""

    async def own_runs(self: Rights, worker_id: int, runs: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
        return set(runs)

    return [(Rights, "own_runs", own_runs)]


def any_worker_is_ones_own() -> Replacements:
    """Whoever has a token may speak as any worker."""

    async def nothing(*_: object) -> None:
        """Whose the worker is does not matter."""

    return [(Rights, "_check_worker", nothing)]


def reports_without_an_answer_are_done_with() -> Replacements:
    """A client takes a report for told that it could not tell."""

    async def report(self: HttpCoordinator, worker_id: int, reports: Sequence[Report]) -> Receipt:
        try:
            return await real(self, worker_id, reports)
        except CoordinatorUnreachable:
            return Receipt({(each.task_id, each.epoch) for each in reports})

    real = HttpCoordinator.report
    return [(HttpCoordinator, "report", report)]


def nobody_looks_where_hints_are_lost() -> Replacements:
    """Held claims are served when there is a hint, and only then."""
    return [(held_claims, "SCOUT_S", 1e6)]


def held_claims_of_no_call() -> Replacements:
    """A server claims for those whom it holds without the number of their call, by which lost claims are found."""

    async def claim(self: verbs.Desk, asked: protocol.ClaimTasks) -> list[Claim]:
        return await real(self, structs.replace(asked, call=0))

    real = verbs.Desk.claim
    return [(verbs.Desk, "claim", claim)]


def deadlines_from_the_answer() -> Replacements:
    """A worker counts its session from when it heard that it was renewed, rather than from when it asked."""

    def renewed(self: Cutoff, sent: float) -> None:
        real(self, self.clock.monotonic())

    real = Cutoff.renewed
    return [(Cutoff, "renewed", renewed)]


def servers_that_remember_what_they_granted() -> Replacements:
    """Windows for ids are counted in the memory of a server: the next one begins with the first again."""

    async def lend_ids(database: Any, until_ms: int) -> tuple[int, Grant | None]:
        now = await database.read(now_ms)
        if until_ms - now >= WINDOW_MS // 2:
            return now, None
        database.lent = getattr(database, "lent", -1) + 1
        return now, Grant(database.lent, now, now + WINDOW_MS)

    return [(verbs, "lend_ids", lend_ids)]


HTTP_MISTAKES: dict[str, Plant] = {
    plant.__name__: plant
    for plant in (
        claims_that_are_repeated_claim_anew,
        repeats_that_do_not_say_so,
        repeated_reports_are_conflicts,
        any_run_is_ones_own,
        any_worker_is_ones_own,
        reports_without_an_answer_are_done_with,
        nobody_looks_where_hints_are_lost,
        held_claims_of_no_call,
        deadlines_from_the_answer,
        servers_that_remember_what_they_granted,
    )
}
