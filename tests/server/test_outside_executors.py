"""Nobody outside runs a command, or calls an address of the inside, unless the settings say so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aaiclick.config import reset_settings
from aaiclick.orchestration import ajob_test, get_job, get_tasks_for_job
from aaiclick.orchestration.access import untrusted_entrypoints
from tests.server.conftest import Client, problem_in
from tests.support.web import serving

HERE = "tests.server.outside_commands"
SHELL: dict[str, Any] = {"name": "x", "entrypoint": "shell:", "kwargs": {"argv": ["echo", "hi"]}}


def allow(monkeypatch: pytest.MonkeyPatch, names: str, **more: str) -> None:
    monkeypatch.setenv("AAICLICK_ENTRYPOINT_PREFIXES", names)
    for name, value in more.items():
        monkeypatch.setenv(name, value)
    untrusted_entrypoints._known.clear()
    reset_settings()


async def ended(client: Client, body: dict[str, Any]) -> tuple[str, object, str]:
    """Submit it, run it here, and tell how it ended, with its result, and its error."""
    answer = await client.post("/jobs", json=body)
    assert answer.status_code == 201, answer.text
    job = await get_job(int(answer.json()["id"]))
    assert job is not None
    done = await ajob_test(job)
    return str(done.status), done.result if done.status == "completed" else None, str(done.error)


@pytest.mark.parametrize(
    "entrypoint", ["shell:", "rest:", "@shell:", "~shell:", f"shell:{HERE}.lists", "shell:os.getcwd"]
)
async def test_an_executor_is_refused_unless_it_is_named_in_the_settings(client: Client, entrypoint: str) -> None:
    problem_in(await client.post("/jobs", json={**SHELL, "entrypoint": entrypoint}), 422)
    problem_in(await client.put("/registered-jobs/x", json={"entrypoint": entrypoint}), 422)


async def test_a_command_runs_if_the_settings_say_so(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, "tests.server,shell:")
    assert await ended(client, SHELL) == ("completed", "hi", "None")
    problem_in(await client.post("/jobs", json={**SHELL, "kwargs": {"argv": ["x"], "no": 1}}), 422)
    problem_in(await client.post("/jobs", json={**SHELL, "entrypoint": "rest:"}), 422)


async def test_a_worker_whose_settings_do_not_say_so_refuses(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, "shell:")
    answer = await client.post("/jobs", json=SHELL)
    job = await get_job(int(answer.json()["id"]))
    assert job is not None
    for names in ("tests.server", ""):
        allow(monkeypatch, names)
        done = await ajob_test(job)
        assert (done.status, "from outside, these may be run" in str(done.error)) == ("failed", True)


async def test_a_command_that_code_describes_may_be_asked_for(client: Client) -> None:
    body = {"name": "x", "entrypoint": f"{HERE}.greets", "kwargs": {"name": "$(id); you"}}
    answer = await client.post("/jobs", json=body)
    (task,) = await get_tasks_for_job(int(answer.json()["id"]))
    assert (task.entrypoint, task.executor) == (f"@shell:{HERE}.greets", "shell")
    assert (task.retry.max_retries, task.retry.delay_s, task.timeout_s) == (2, 0.5, 60), "its own options hold"
    assert await ended(client, body) == ("completed", "hello $(id); you", "None")


async def test_code_that_makes_what_it_is_told_is_judged_like_the_request(client: Client) -> None:
    kwargs = {"executor": "shell", "argv": ["echo", "hi"]}
    body = {"name": "x", "entrypoint": f"{HERE}.runs_what_it_is_told", "kwargs": kwargs}
    status, _, error = await ended(client, body)
    assert (status, "from outside, these may be run" in error) == ("failed", True)


async def test_a_call_of_the_inside_is_refused_unless_the_settings_say_so(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with serving() as web:
        kwargs = {"method": "GET", "url": f"{web.url}/status/200"}
        body = {"name": "x", "entrypoint": "rest:", "kwargs": kwargs}
        allow(monkeypatch, "rest:")
        status, _, error = await ended(client, body)
        assert (status, "AAICLICK_REST_ALLOW" in error, web.asked) == ("failed", True, [])
        allow(monkeypatch, "rest:", AAICLICK_REST_ALLOW="127.0.0.0/8")
        assert (await ended(client, body))[0] == "completed"
        assert len(web.asked) == 1
