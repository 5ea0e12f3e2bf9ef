"""A replica as a process: its coordinator is killed and comes back, and so is it; nothing is lost or doubled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from aaiclick.orchestration.access.tokens import digest_of
from aaiclick.orchestration.models import Job
from aaiclick.orchestration.rules.roles import Role
from aaiclick.orchestration.store.access import tokens as store
from aaiclick.orchestration.store.reading.event_feed import newest
from tests.support.fleet import LONG, Fleet, Member, eventually, fleet
from tests.support.orchestra import more_workers
from tests.support.remote import SECRET, TRAP, Remote, free_port, remote_fleet

__all__ = ["fleet"]

REPLICATED = ("jobs", "groups", "tasks", "dependencies", "runs", "events")


class Replica:
    """A replica of a fleet's server."""

    def __init__(self, remote: Remote, viewer: str) -> None:
        self.remote, self.viewer, self.port = remote, viewer, free_port()
        self.file = remote.fleet.home / "replica.db"

    async def start(self) -> Member:
        which = ("--replica-of", self.remote.url, "--replica-file", str(self.file), "--port", str(self.port))
        env: dict[str, Any] = {"AAICLICK_SQL_URL": TRAP, "AAICLICK_API_TOKEN": self.remote.token}
        member = self.remote.fleet.start("server", "start", *which, **env)
        await eventually(lambda: "serving" in member.said() or not member.alive, self.remote.fleet.explain)
        assert member.alive, member.said()
        return member

    async def ask(self, path: str, method: str = "GET", **params: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.viewer}"}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=60) as client:
            return await client.request(method, path, params=params)

    async def numbers(self) -> dict[str, float]:
        """Its metrics."""
        text = (await self.ask("/metrics")).text
        lines = (line.split() for line in text.splitlines() if not line.startswith("#"))
        return {name.removeprefix("aaiclick_replica_"): float(value) for name, value in lines}

    async def sees(self, seq: int) -> httpx.Response:
        """The jobs, once this event is there."""
        found: list[httpx.Response] = []

        async def is_there() -> bool:
            found.append(await self.ask("/api/v1/jobs", min_seq=seq))
            return found[-1].status_code == 200

        await eventually(is_there, self.remote.fleet.explain)
        return found[-1]


async def started(fleet: Fleet) -> tuple[Remote, Replica]:
    remote = await remote_fleet(fleet, Role.REPLICA)
    token = await fleet.database.transact(
        lambda session: store.add_token(session, name="v", role=Role.VIEWER, digest=digest_of(SECRET), lives_s=None)
    )
    return remote, Replica(remote, f"aai_{token.id}_{SECRET}")


async def ended(fleet: Fleet, *names: str) -> tuple[Job, int]:
    """A job whose tasks have completed, and the newest event."""
    (fleet.worker,) = await more_workers(fleet, 1)
    job = await fleet.submit(*fleet.quick(len(names)), name=names[0])
    await fleet.drain()
    return job, await fleet.database.read(newest)


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mariadb"] if LONG else ["sqlite"], indirect=True)
async def test_a_replica_outlives_its_coordinator_and_its_own_death(fleet: Fleet, tmp_path: Path) -> None:
    remote, replica = await started(fleet)
    _, seq = await ended(fleet, "first", "x", "y")
    member = await replica.start()
    answer = await replica.sees(seq)
    assert [job["name"] for job in answer.json()["jobs"]] == ["first"]
    assert int(answer.headers["aaiclick-as-of-seq"]) >= seq
    assert int(answer.headers["aaiclick-lag-ms"]) >= 0
    refused = await replica.ask(f"/api/v1/jobs/{answer.json()['jobs'][0]['id']}/cancel", "POST")
    assert (refused.status_code, refused.json()["facts"]["coordinator"]) == (421, remote.url)

    remote.servers[0].kill()  # what is written meanwhile goes into the database
    _, later = await ended(fleet, "second", "x")
    await eventually(lambda: _is_away(replica), fleet.explain)
    stale = await replica.ask("/api/v1/jobs")
    assert [job["name"] for job in stale.json()["jobs"]] == ["first"]
    assert int(stale.headers["aaiclick-as-of-seq"]) < later
    assert (await replica.ask("/api/v1/cache")).status_code == 503

    member.kill()
    member = await replica.start()  # while the coordinator is away
    assert [job["name"] for job in (await replica.ask("/api/v1/jobs")).json()["jobs"]] == ["first"]
    await remote.serve()
    assert [job["name"] for job in (await replica.sees(later)).json()["jobs"]] == ["second", "first"]

    member.kill()
    _, last = await ended(fleet, "third", "x", "y", "z")
    await replica.start()
    assert [job["name"] for job in (await replica.sees(last)).json()["jobs"]] == ["third", "second", "first"]
    numbers = await replica.numbers()
    assert numbers["copies_total"] == 0  # it went on from its cursor
    assert numbers["events_total"] == last - later
    told = [each["id"] for each in (await replica.ask("/api/v1/events", limit=1000)).json()["events"]]
    assert told == sorted(set(told), key=int)
    assert int(told[-1]) == last


async def _is_away(replica: Replica) -> bool:
    health = (await replica.ask("/api/v1/health")).json()
    return not next(check for check in health["checks"] if check["name"] == "coordinator")["ok"]
