"""Commands and calls in jobs: they wait for others, hand on results, are skipped, tried again, stopped."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn

from aaiclick import RetryPolicy, create_job, create_task, get_job_result, get_runs_for_task, job, rest, shell, task
from aaiclick.config import reset_settings
from aaiclick.orchestration import Job, ajob_test, get_tasks_for_job
from aaiclick.server.app import create_app
from aaiclick.server.transport.addresses import listen, url_of
from tests.support.bodies import is_alive, pids_in
from tests.support.fleet import Fleet, eventually, fleet
from tests.support.front_door import state
from tests.support.web import Web, serving

__all__ = ["fleet", "state"]


@task
def doubled(text: str) -> int:
    return 2 * int(text)


@task(executor="shell")
def counts(number: int, unit: str) -> dict[str, object]:
    return {"argv": ["echo", f"{number} {unit}"], "env": {"LANG": "C"}}


@task
def whatever_came(value: object) -> object:
    return ["got", value]


@job
def pipeline(web: str) -> object:
    lines = shell("printf 'a\nb\nc\n' | wc -l")
    answer = rest("POST", f"{web}/value", params={"json": "4"}, json={"lines": lines})
    return [counts(doubled(lines), unit="things"), answer]


@pytest.fixture
def web() -> Iterator[Web]:
    with serving() as server:
        yield server


async def ran(made: Job) -> tuple[Job, dict[str, str]]:
    done = await ajob_test(made)
    return done, {each.name: str(each.status) for each in await get_tasks_for_job(done.id)}


async def test_results_go_from_one_to_the_next(state: str, web: Web) -> None:
    done = await ajob_test(pipeline, web=web.url)
    assert (str(done.status), await get_job_result(done.id)) == ("completed", ["6 things", 4])
    assert [json.loads(asked.body) for asked in web.asked] == [{"lines": "3"}]


async def test_a_command_that_has_nothing_to_do_is_skipped_and_its_dependents_run(state: str) -> None:
    nothing = shell("exit 99", name="nothing", skip_codes=[99])
    after = create_task(whatever_came, {"value": nothing}, name="after")
    done, statuses = await ran(await create_job("x", tasks=[nothing, after]))
    assert (str(done.status), statuses) == ("completed", {"nothing": "skipped", "after": "completed"})
    assert (done.completed_tasks, done.skipped_tasks, done.failed_tasks) == (1, 1, 0)
    (run,) = await get_runs_for_task(nothing.id)
    assert (str(run.outcome), run.error) == (
        "skipped",
        "TaskSkipped: The command 'exit 99' ended with exit code 99, which skips the task.",
    )


async def test_only_the_codes_that_are_told_are_tried_again(state: str, tmp_path: Path) -> None:
    policy = RetryPolicy(max_retries=3, delay_s=0)
    note = tmp_path / "note"
    again = shell(f"echo x >> {note}; [ $(wc -l < {note}) -ge 3 ] || exit 75", name="again", retry=policy)
    final = shell("exit 64", name="final", retry=policy, retry_codes=[75])
    _, statuses = await ran(await create_job("x", tasks=[again, final]))
    assert statuses == {"again": "completed", "final": "failed"}
    assert [len(await get_runs_for_task(each.id)) for each in (again, final)] == [3, 1]


# ---------------------------------------------------------------- on real workers


async def test_stopping_a_task_or_its_worker_leaves_no_process(fleet: Fleet, tmp_path: Path) -> None:
    (worker,) = await fleet.workers(1, concurrency=2)
    script = "(trap '' TERM HUP; while :; do sleep 0.1; done) & echo $! $$ > {}; sleep 1000"
    first, second = tmp_path / "first", tmp_path / "second"
    stopped = await fleet.submit(shell(script.format(first)))
    await fleet.submit(shell(script.format(second)))
    await eventually(lambda: all(each.exists() and len(pids_in(each)) == 2 for each in (first, second)))
    assert await fleet.coordinator.cancel(stopped.id)
    await eventually(lambda: not any(map(is_alive, pids_in(first))))
    assert all(map(is_alive, pids_in(second)))
    worker.kill()
    await eventually(lambda: not any(map(is_alive, pids_in(second))))


async def test_a_callback_that_comes_while_no_worker_and_no_server_runs_is_lost_to_nobody(
    fleet: Fleet, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker is killed while it waits; the callback comes to a server of later; another worker ends the task."""
    monkeypatch.setenv("AAICLICK_SQL_URL", fleet.database.url)
    reset_settings()
    listening = listen("127.0.0.1", 0)
    url = url_of(listening)
    web.answers["/jobs"] = [(202, {}, "")] * 10
    (first,) = await fleet.workers(1, AAICLICK_SERVER_URL=url)
    waits = rest(
        "POST", f"{web.url}/jobs", json={"tell": "{callback_url}"}, callback={"field": "state", "done": ["ok"]}
    )
    submitted = await fleet.submit(waits)
    await eventually(lambda: bool(web.asked))
    first.kill()
    (asked,) = web.asked
    address = json.loads(asked.body)["tell"]
    assert address == asked.headers["Callback-URL"]
    assert address.startswith(f"{url}/api/v1/callbacks/")

    server = uvicorn.Server(uvicorn.Config(create_app(), log_level="warning", ws="none"))
    running = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    running.start()
    try:
        async with httpx.AsyncClient(timeout=60) as client:
            answer = await client.post(address, json={"state": "ok", "rows": 3})
        assert answer.json() == {"accepted": True, "repeated": False}
        await fleet.workers(1, AAICLICK_SERVER_URL=url)
        assert (await fleet.end_of(submitted)).status == "completed"
    finally:
        server.should_exit = True
        await asyncio.to_thread(running.join)
        reset_settings()
    assert list((await fleet.results(submitted)).values()) == [{"state": "ok", "rows": 3}]
    assert len(web.asked) == 1, "what had been called back was not asked for again"
