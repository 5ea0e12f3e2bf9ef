"""Past times of schedules over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.orchestration import list_jobs
from aaiclick.orchestration.access.audit import list_audit
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.control.schedules import Scheduler
from aaiclick.orchestration.launchers.debug import ajob_test
from tests.server.conftest import Client, problem_in

ECHO = {"entrypoint": "tests.server.outside_flows.echo", "default_kwargs": {"value": 1}, "schedule": "@daily"}
SPAN = {"start": "2026-03-01", "end": "2026-03-04"}
HERE = "/registered-jobs/nightly"


async def fire() -> None:
    async with connected() as database:
        await Scheduler(database).fire()


async def test_a_range_is_planned_run_and_shown(each_client: Client) -> None:
    await each_client.put(HERE, json=ECHO | {"timezone": "Europe/Berlin"})
    planned = await each_client.post(f"{HERE}/backfills", json=SPAN | {"dry_run": True})
    assert (planned.status_code, planned.json()["would_run"]) == (200, 3)
    assert planned.json()["times"][0]["time"] == "2026-03-01T00:00:00+01:00"
    assert (await each_client.get(f"{HERE}/backfills")).json() == {"backfills": [], "next": None}

    made = await each_client.post(f"{HERE}/backfills", json=SPAN | {"parallel": 2}, headers=each_client.of("operator"))
    assert made.status_code == 201, made.text
    backfill = made.json()
    assert (backfill["status"], backfill["counts"]) == ("running", {"waiting": 3})
    await fire()
    for job in await list_jobs():
        await ajob_test(job)
    shown = (await each_client.get(f"/backfills/{backfill['id']}")).json()
    assert shown["counts"] == {"completed": 2, "waiting": 1}
    assert (await each_client.get(f"{HERE}/backfills")).json()["backfills"] == [shown]

    again = (await each_client.post(f"{HERE}/backfills", json=SPAN | {"dry_run": True})).json()
    assert (again["would_run"], again["left_alone"]) == (1, {"completed": 2})
    assert (await each_client.post(f"/backfills/{backfill['id']}/cancel")).json() == {"cancelled": True}
    assert (await each_client.post(f"/backfills/{backfill['id']}/cancel")).json() == {"cancelled": False}
    assert [(entry.verb, entry.target) for entry in await list_audit()][:3] == [
        ("cancel", f"backfill {backfill['id']}"),
        ("cancel", f"backfill {backfill['id']}"),
        ("backfill", f"backfill {backfill['id']}"),
    ]


async def test_times_are_listed_page_by_page(client: Client) -> None:
    await client.put(HERE, json=ECHO)
    await client.post(f"{HERE}/backfills", json=SPAN | {"parallel": 3})
    await fire()
    seen: list[str] = []
    asked: dict[str, Any] = {"limit": 2}
    while True:
        page = (await client.get(f"{HERE}/fires", params=asked)).json()
        seen += [each["fire_at"] for each in page["fires"]]
        if page["next"] is None:
            break
        asked["before"] = page["next"]
    assert seen == [f"2026-03-0{day}T00:00:00Z" for day in (3, 2, 1)]


async def test_backfills_are_listed_page_by_page(client: Client) -> None:
    await client.put(HERE, json=ECHO)
    made = [(await client.post(f"{HERE}/backfills", json=SPAN)).json()["id"] for _ in range(3)]
    first = (await client.get(f"{HERE}/backfills", params={"limit": 2})).json()
    second = (await client.get(f"{HERE}/backfills", params={"limit": 2, "before": first["next"]})).json()
    assert [each["id"] for each in first["backfills"] + second["backfills"]] == made[::-1]
    assert second["next"] is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"start": "yesterday"}, "start"),
        ({"start": "2026-03-01T00:00:00"}, "start"),
        ({"end": "2999-01-01"}, "end"),
        ({"end": "2026-03-01"}, "start"),
        ({"parallel": 0}, "parallel"),
        ({"force": True, "failed": True}, "force"),
        ({"kwargs": {"nothing": 1}}, "unexpected"),
        ({"forse": True}, "forse"),
    ],
)
async def test_what_is_refused(client: Client, change: dict[str, object], said: str) -> None:
    await client.put(HERE, json=ECHO)
    assert said in problem_in(await client.post(f"{HERE}/backfills", json=SPAN | change), 422)["detail"]
    assert (await client.get(f"{HERE}/backfills")).json()["backfills"] == []


async def test_what_is_not_there_and_who_may_not(client: Client) -> None:
    await client.put("/registered-jobs/bare", json=ECHO | {"schedule": None})
    problem_in(await client.post("/registered-jobs/bare/backfills", json=SPAN), 409)
    problem_in(await client.post("/registered-jobs/nobody/backfills", json=SPAN), 404)
    problem_in(await client.get("/registered-jobs/nobody/backfills"), 404)
    problem_in(await client.get("/registered-jobs/nobody/fires"), 404)
    problem_in(await client.get("/registered-jobs/bare/fires", params={"before": "2026-01-01"}), 422)
    problem_in(await client.get("/backfills/5"), 404)
    problem_in(await client.post("/backfills/5/cancel"), 404)
    await client.put(HERE, json=ECHO)
    problem_in(await client.post(f"{HERE}/backfills", json=SPAN, headers=client.of("viewer")), 403)
