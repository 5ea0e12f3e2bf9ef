"""Objects in tasks of a worker that has neither a database nor ClickHouse: through the server, with its token."""

from __future__ import annotations

import json

from aaiclick.orchestration.models import Task
from tests.support.fleet import Fleet, fleet
from tests.support.remote import remote_fleet

__all__ = ["fleet"]

COUNT = 1000


async def test_a_task_elsewhere_takes_and_returns_objects(fleet: Fleet) -> None:
    remote = await remote_fleet(fleet)
    node = fleet.home / "node"
    await remote.workers(1, AAICLICK_LOCAL_ROOT=str(node))
    given = Task("columns.gives", {"count": COUNT}, name="gives")
    doubled = Task("columns.doubles", {"values": given}, name="doubles")
    summed = Task("columns.sums", {"values": doubled}, name="sums")
    job = await fleet.submit(given, doubled, summed)
    assert (await fleet.end_of(job)).status == "completed", [row.error for row in (await fleet.tasks(job)).values()]
    row = (await fleet.tasks(job))["sums"]
    assert json.loads(row.result)["value"] == COUNT * (COUNT - 1)
    assert not node.exists(), "an engine of its own, or anything else that is local, was made"
