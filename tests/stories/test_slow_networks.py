"""A network between workers and their server that is slow, or loses all that goes in one direction.

The way is a proxy of ours, so these are told on every machine; `test_hosts_apart` loses packets.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest

from aaiclick.orchestration.models import Task
from tests.support.fleet import Fleet, fleet, servers_only
from tests.support.proxy import Proxy
from tests.support.remote import Remote, remote_fleet
from tests.support.witness import begun_elsewhere, overlaps

__all__ = ["fleet"]

pytestmark = [servers_only, pytest.mark.timeout(600)]

CALM_S = "60"
DELAY_S = 0.25
TRICKLE_BYTES_PER_S = 20_000
LARGE_BYTES = 40_000


@pytest.fixture
async def remote(fleet: Fleet) -> Remote:
    fleet.env |= {"AAICLICK_SESSION_SECONDS": "6", "AAICLICK_LOSSES_MAX": "1000"}
    return await remote_fleet(fleet)


@pytest.fixture
async def road(remote: Remote) -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy before the server, and the address there."""
    proxy = Proxy("127.0.0.1", remote.port)
    port = await proxy.open()
    yield proxy, f"http://127.0.0.1:{port}"
    remote.fleet.end()
    await proxy.close()


@pytest.mark.parametrize(
    ("delay_s", "bytes_per_s"),
    [(DELAY_S, None), pytest.param(0.0, TRICKLE_BYTES_PER_S, marks=pytest.mark.long)],
    ids=["delay", "trickle"],
)
async def test_over_a_slow_network_all_is_done_once(
    remote: Remote, road: tuple[Proxy, str], delay_s: float, bytes_per_s: int | None
) -> None:
    fleet, (proxy, url) = remote.fleet, road
    proxy.delay_s, proxy.bytes_per_s = delay_s, bytes_per_s
    await remote.workers(2, url=url, concurrency=4, AAICLICK_SESSION_SECONDS=CALM_S)
    values = {f"large{number}": secrets.token_hex(LARGE_BYTES) for number in range(4)}
    large = [Task("errands.quick", {"value": value}, name=name) for name, value in values.items()]
    job = await fleet.submit(*fleet.quick(20), *large, fleet.errand("waits"))
    await fleet.noted("began", 1)
    fleet.let()
    assert (await fleet.end_of(job)).status == "completed"
    rows = (await fleet.tasks(job)).values()
    assert {(row.lost_count, row.crash_count, row.attempt) for row in rows} == {(0, 0, 0)}
    assert len(fleet.notes("began")) == 1
    results = await fleet.results(job)
    assert {name: results[name] for name in values} == values


@pytest.mark.long
@pytest.mark.parametrize("direction", ["up", "down"])
async def test_when_one_direction_is_lost_bodies_end_before_others_begin_them(
    remote: Remote, road: tuple[Proxy, str], direction: str
) -> None:
    """B5: what is sent is acknowledged by the network, and arrives nowhere."""
    fleet, (proxy, url) = remote.fleet, road
    fleet.start("background", "start")
    (first,) = await remote.workers(1, url=url)
    job = await fleet.submit(fleet.errand("ticks"), fleet.errand("ticks_async"))
    await fleet.noted("began", 2)
    await remote.workers(1, AAICLICK_SESSION_SECONDS=CALM_S)
    proxy.lost = frozenset({direction})
    await begun_elsewhere(fleet, "ticks", "ticks_async")
    assert overlaps(fleet, "ticks", "ticks_async") == []
    assert first.alive
    proxy.lost = frozenset()
    proxy.reset_all()
    fleet.let()
    assert (await fleet.end_of(job)).status == "completed"
    assert overlaps(fleet, "ticks", "ticks_async") == []
    for row in (await fleet.tasks(job)).values():
        assert (row.crash_count, row.attempt) == (0, 0)
