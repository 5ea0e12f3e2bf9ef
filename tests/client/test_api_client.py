"""The blocking client, against a running server."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from aaiclick.client import APIClient
from aaiclick.errors import Conflict, InputError, NotAuthenticated, NotFound, ObjectNotFound, ServerUnreachable
from tests.client.conftest import Served
from tests.client.flows import EXACT, Place


def test_a_result_is_the_value_that_it_was(served: Served) -> None:
    found = served.client.get_job_result(served.jobs["exact"].id)
    assert found == EXACT
    assert repr(found) == repr(EXACT)
    assert type(found["place"]) is Place


def test_results_of_tasks_are_put_in_their_place(served: Served) -> None:
    assert served.client.get_job_result(served.jobs["whole"].id) == [1, {"two": 2}]
    assert served.client.show_job_result(served.jobs["whole"].id)["result"] == [1, {"two": 2}]


def test_an_object_comes_whole_as_arrow_and_pandas(served: Served) -> None:
    people = served.client.arrow("people")
    assert people.column("n").to_pylist() == list(range(10))
    assert served.client.df("people")["name"].to_list() == list("abcdefghij")
    assert sum(batch.num_rows for batch in served.client.iter_arrow("people")) == 10
    with pytest.raises(ObjectNotFound):
        served.client.arrow("nothing")


def test_the_object_that_a_job_returned(served: Served) -> None:
    job = served.jobs["table"].id
    assert served.client.get_job_result(job)["object_type"] == "object"
    assert served.client.result_arrow(job).to_pydict() == {"n": [1, 2, 3]}
    assert served.client.result_df(job)["n"].to_list() == [1, 2, 3]
    with pytest.raises(Conflict, match="returned no Object"):
        served.client.result_arrow(served.jobs["whole"].id)


def test_pages_are_followed(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    first = served.client.list_jobs(limit=2, total=True)
    assert first["total"] == 5
    following = served.client.list_jobs(limit=2, before=first["next"])
    names = [job["name"] for page in (first, following) for job in page["jobs"]]
    assert names == [job["name"] for job in served.client.iter_jobs()][:4]
    assert [task["name"] for task in served.client.iter_job_tasks(served.jobs["whole"].id)].count("echo") == 2
    assert [job["name"] for job in served.client.iter_jobs(status="failed")] == ["broken"]


def test_the_same_errors_are_raised_as_where_the_database_is(served: Served) -> None:
    with pytest.raises(NotFound) as gone:
        served.client.get_job(5)
    assert (gone.value.what, gone.value.field, gone.value.value, gone.value.status) == ("job", "id", "5", 404)
    assert str(gone.value).startswith("No job with id 5.")
    with pytest.raises(Conflict, match="it is failed"):
        served.client.get_job_result(served.jobs["broken"].id)
    with pytest.raises(InputError) as wrong:
        served.client.list_jobs(limit=0)
    assert wrong.value.errors[0]["field"] == "limit"
    with pytest.raises(NotFound):
        served.client.get_registered_job("a/b ?#%")


def test_a_wrong_token_and_none(served: Served) -> None:
    for token in ("wrong", ""):
        with APIClient(served.server.url, token) as client, pytest.raises(NotAuthenticated):
            client.list_jobs()


def test_nobody_there(served: Served) -> None:
    with APIClient("http://127.0.0.1:1", "x", retries=1) as client, pytest.raises(ServerUnreachable, match="refused"):
        client.get_job(1)


def test_a_job_is_submitted_once_for_a_key(served: Served) -> None:
    """A1: the same key and the same body, twice."""
    asked: dict[str, Any] = {"name": "keyed", "entrypoint": "tests.client.flows.echo", "kwargs": {"value": 1}}
    first, second = (served.client.submit_job(**asked, key="monday") for _ in range(2))
    assert first["id"] == second["id"]
    moves = served.client.list_events(job_id=first["id"], after=0)["events"]
    assert len({event["task_id"] for event in moves} - {None}) <= 1
    assert len(served.client.list_job_tasks(first["id"])["tasks"]) == 1
    run = served.client.run_registered_job("echo", {"value": 2}, key="tuesday")
    assert run["id"] == served.client.run_registered_job("echo", {"value": 2}, key="tuesday")["id"]
    for job_id in (first["id"], run["id"]):
        assert served.client.cancel_job(job_id) == {"cancelled": True}
        assert served.client.cancel_job(job_id) == {"cancelled": False}


def test_logs_of_a_task_that_has_ended(served: Served) -> None:
    tasks = [task for task in served.client.iter_job_tasks(served.jobs["whole"].id) if task["name"] == "echo"]
    whole = b"".join(served.client.follow_log(tasks[0]["id"]))
    assert b"echo says" in whole
    assert served.client.read_whole_log(tasks[0]["id"]) == whole
    assert served.client.read_log(tasks[0]["id"], offset=-5).data == whole[-5:]
    with pytest.raises(NotFound):
        served.client.read_log(served.jobs["broken"].id)


def test_ids_by_their_ends(served: Served) -> None:
    whole = served.jobs["whole"].id
    assert served.client.find_id("job", str(whole)) == whole
    assert served.client.find_id("job", str(whole)[-10:]) == whole
    with pytest.raises(InputError):
        served.client.find_id("job", "1")


def test_the_catalogue_and_the_fleet(served: Served) -> None:
    made = served.client.register_job(
        "nightly", "tests.client.flows.echo", schedule="@daily", default_kwargs={"value": 1}, enabled=False
    )
    assert (made["schedule"], made["enabled"]) == ("@daily", False)
    assert served.client.enable_job("nightly")["enabled"]
    assert not served.client.disable_job("nightly")["enabled"]
    assert [each["name"] for each in served.client.list_registered_jobs()["registered_jobs"]] == ["echo", "nightly"]
    assert served.client.plan_backfill("nightly", "2026-03-01", "2026-03-03")["would_run"] == 2
    assert served.client.list_workers()["workers"][0]["status"] == "stopped"
    assert served.client.is_alive()
    assert served.client.is_ready()
    assert "jobs" in served.client.metrics()
    assert served.client.list_audit()["entries"]
    assert {check["name"] for check in served.client.health()["checks"]} >= {"database", "schema"}


def test_threads_share_a_client(served: Served) -> None:
    together = threading.Barrier(4)

    def look(_: int) -> set[str]:
        together.wait()
        return {served.client.get_job(job.id)["id"] for job in served.jobs.values()}

    with ThreadPoolExecutor(4) as pool:
        assert len({frozenset(found) for found in pool.map(look, range(4))}) == 1
