"""One function behind each verb, and who asked is written down. The rooms' own tests ask over HTTP."""

from __future__ import annotations

import pytest

from aaiclick.errors import AaiclickError, InputError, NotAllowed
from aaiclick.orchestration import Secret, create_job
from aaiclick.orchestration.access.audit import list_audit
from aaiclick.orchestration.access.tokens import create_token
from aaiclick.orchestration.jobs import list_jobs
from aaiclick.orchestration.registered_jobs import register_job
from aaiclick.server import changes, request_models
from aaiclick.server.auth.actors import Actor
from aaiclick.server.lookups import the_entry
from tests.orchestration import sample_flows as flows
from tests.server.conftest import FLOWS, Client


@pytest.fixture
async def who() -> Actor:
    return Actor((await create_token("ann", "author")).token)


async def test_a_change_tells_who_what_and_how_it_went(who: Actor) -> None:
    job = await create_job("sum", flows.add(1, 2))
    assert (await changes.cancel(who, str(job.id)))["cancelled"] is True
    assert (await changes.cancel(who, str(job.id)))["cancelled"] is False
    told = [(each.actor, each.verb, each.target, each.outcome) for each in await list_audit() if each.verb == "cancel"]
    target = f"job {job.id}"
    assert told == [("ann", "cancel", target, "nothing: it had ended already"), ("ann", "cancel", target, "done")]


@pytest.mark.parametrize("verb", ["retry", "clear"])
async def test_what_is_only_tried_is_not_written_down(who: Actor, verb: str) -> None:
    with pytest.raises(AaiclickError):
        await getattr(changes, verb)(who, "12345", request_models.Clear(dry_run=True))
    assert verb not in [each.verb for each in await list_audit()]


@pytest.mark.parametrize("verb", ["cancel", "replay", "drain", "stop"])
async def test_what_is_refused_is_written_down_and_an_id_that_is_none_is_not(who: Actor, verb: str) -> None:
    with pytest.raises(InputError):
        await getattr(changes, verb)(who, str(2**63))
    with pytest.raises(AaiclickError):
        await getattr(changes, verb)(who, "12345")
    (told,) = [each for each in await list_audit() if each.verb == verb]
    assert str(told.outcome).startswith("refused: NotFound")


async def test_the_secrets_of_an_entry_go_to_no_other_function(who: Actor) -> None:
    """An author chooses the function; without this, also one that sends away whatever it is given."""
    name = "tests.orchestration.sample_flows.echo"
    await register_job("nightly", name, default_kwargs={"value": {"logins": [Secret("env:NIGHTLY_PASSWORD")]}})
    await register_job("daily", name, default_kwargs={"value": 1})
    other = name + "_on_a_thread"
    with pytest.raises(NotAllowed, match="passes secrets to another function"):
        await changes.submit(who, request_models.SubmitJob(name="nightly", entrypoint=other))
    assert await list_jobs() == []
    for job, function in (("nightly", name), ("daily", other)):
        assert (await changes.submit(who, request_models.SubmitJob(name=job, entrypoint=function))).name == job
    await changes.register(
        who, "nightly", request_models.RegisterJob(entrypoint=other)
    )  # the defaults are replaced with it
    assert (await the_entry("nightly")).default_kwargs == {}


async def test_what_was_submitted_is_written_down_with_its_function(client: Client) -> None:
    """Also what was refused."""
    submitted = await client.post("/jobs", json={"name": "x", "entrypoint": f"{FLOWS}.nothing"})
    await client.post("/jobs", json={"name": "y", "entrypoint": "os.system"})
    await client.put("/registered-jobs/z", json={"entrypoint": f"{FLOWS}.nothing"})
    ran = await client.post("/registered-jobs/z/run", json={})
    told = {(each.verb, each.target) for each in await list_audit() if each.verb in ("submit", "register", "run")}
    assert told == {
        ("submit", f"job {submitted.json()['id']}: {FLOWS}.nothing"),
        ("submit", "job 'y': os.system"),
        ("register", f"registered job 'z': {FLOWS}.nothing"),
        ("run", f"job {ran.json()['id']}: {FLOWS}.nothing"),
    }
