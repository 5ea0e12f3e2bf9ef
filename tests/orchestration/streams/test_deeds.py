"""From payloads to arguments, and from orders to what they do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aaiclick.errors import InputError, NotFound
from aaiclick.orchestration import create_job, get_job, get_registered_job, orch_context, register_job
from aaiclick.orchestration.access.audit import list_audit
from aaiclick.orchestration.streams.deeds import bound, obey_entry
from aaiclick.orchestration.streams.entries import Entry
from tests.support.front_door import local as local

FLOWS = "tests.orchestration.sample_flows"
WHOLE: dict[str, Any] = {"parameters": [{"name": "payload"}, {"name": "other"}]}
PARTS: dict[str, Any] = {"parameters": [{"name": "a"}, {"name": "b"}]}


def test_members_are_arguments() -> None:
    assert bound({"a": 1, "b": 2}, PARTS) == {"a": 1, "b": 2}
    assert bound({"a": 1}, None) == {"a": 1}  # its module is missing here


def test_a_parameter_called_payload_takes_it_whole() -> None:
    assert bound({"a": 1}, WHOLE) == {"payload": {"a": 1}}
    assert bound([1], WHOLE) == {"payload": [1]}
    assert bound({"payload": 1, "other": 2}, WHOLE) == {"payload": 1, "other": 2}


@pytest.mark.parametrize("payload", [[1], "a", 1, None, True])
def test_a_payload_without_names_is_refused(payload: Any) -> None:
    with pytest.raises(InputError, match="it must be an object"):
        bound(payload, PARTS)


async def test_orders_are_carried_out_and_may_come_twice(local: Path) -> None:
    async with orch_context():
        job = await create_job("j", f"{FLOWS}.add", kwargs={"a": 1, "b": 2})
        await register_job("nightly", f"{FLOWS}.add", default_kwargs={"a": 1, "b": 2})
        for _ in range(2):
            await obey_entry(Entry("1", "cancel_job", {"job": str(job.id)}))
            await obey_entry(Entry("2", "disable_job", {"name": "nightly"}))
        found, entry = await get_job(job.id), await get_registered_job("nightly")
        assert found is not None
        assert entry is not None
        assert (found.status, entry.enabled) == ("cancelled", False)
        await obey_entry(Entry("3", "enable_job", {"name": "nightly"}))
        assert {each.verb for each in await list_audit()} == {"cancel_job", "disable_job", "enable_job"}
        assert {each.actor for each in await list_audit()} == {"redis"}


@pytest.mark.parametrize(
    ("order", "payload", "error"),
    [
        ("evict_pool", {"pool": "p"}, InputError),
        ("cancel_job", {}, InputError),
        ("cancel_job", [1], InputError),
        ("cancel_job", {"job": 1, "more": 2}, InputError),
        ("cancel_job", {"job": "one"}, InputError),
        ("cancel_job", {"job": True}, InputError),
        ("cancel_job", {"job": 12345}, NotFound),
        ("drain_worker", {"worker": 12345}, NotFound),
        ("enable_job", {"name": 1}, InputError),
        ("enable_job", {"name": "nobody"}, NotFound),
    ],
)
async def test_orders_that_are_refused(local: Path, order: str, payload: Any, error: type[Exception]) -> None:
    async with orch_context():
        with pytest.raises(error):
            await obey_entry(Entry("1", order, payload))
