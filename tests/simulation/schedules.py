"""Registered jobs in a simulated world: they fire each minute, people switch them, and some minutes come again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import update

from aaiclick.orchestration.coordinator.registered_jobs import add_registered_job
from aaiclick.orchestration.rules.schedules.cron import fires, parse_schedule
from aaiclick.orchestration.store.schedules.registered_jobs import set_enabled
from aaiclick.orchestration.store.tables import registered_jobs

if TYPE_CHECKING:
    from tests.simulation.fate import Fate
    from tests.simulation.world import World

MINUTELY = "* * * * *"
STEADY = "steady"
"""Nobody switches it, and all of its times run: none may be missing in the end."""

ENTRIES: dict[str, dict[str, object]] = {
    STEADY: {"missed_runs": "all", "missed_max": 1000},
    "latest": {"missed_runs": "latest"},
    "none": {"missed_runs": "none"},
    "skip": {"missed_runs": "all", "overlap": "skip"},
    "queue": {"missed_runs": "all", "overlap": "queue"},
}


class Schedules:
    """What people do with registered jobs."""

    def __init__(self, fate: Fate) -> None:
        self.fate = fate
        self.dice = fate.dice

    async def register_entries(self) -> None:
        for name, policies in ENTRIES.items():
            facts = {"name": name, "entrypoint": "some.module.t", "schedule": MINUTELY, "timezone": "UTC"}
            await add_registered_job(self.fate.database, {**facts, "default_kwargs": "{}", **policies})

    async def switch(self) -> None:
        """Disable an entry, or enable it."""
        name = self.dice.choice([name for name in ENTRIES if name != STEADY])
        enabled = self.dice.random() < 0.6
        await self.fate.database.transact(partial(set_enabled, name=name, enabled=enabled))

    async def set_back(self) -> None:
        """Some minutes come once more, as after a clock that went back."""
        name = self.dice.choice(sorted(ENTRIES))
        back = timedelta(minutes=self.dice.randint(1, 3))
        minute = self.fate.world.now().replace(second=0, microsecond=0) - back
        enabled = (registered_jobs.c.name == name, registered_jobs.c.enabled)
        mine = update(registered_jobs).where(*enabled).values(next_run_at=minute)
        await self.fate.database.transact(lambda session: session.run(mine))

    async def end(self) -> None:
        """Nothing fires from now on."""
        for name in ENTRIES:
            await self.fate.database.transact(partial(set_enabled, name=name, enabled=False))


def missing(world: World) -> Iterator[str]:
    """Times of the steady entry that did not run, of those before its last."""
    ran = world.state.rows(
        "SELECT f.fire_at, r.created_at FROM fires f JOIN registered_jobs r ON r.id = f.registered_job_id"
        " WHERE r.name = ? AND f.outcome = 'run' ORDER BY f.fire_at",
        STEADY,
    )
    if not ran:
        return
    times = [datetime.fromisoformat(time).replace(tzinfo=UTC) for time, _ in ran]
    made = datetime.fromisoformat(ran[0][1]).replace(tzinfo=UTC)
    for fire in fires(parse_schedule(MINUTELY), UTC, made):
        if fire > times[-1]:
            return
        if fire not in times:
            yield f"every time runs: {fire} of {STEADY}"
