"""What log lines are about."""

from __future__ import annotations

import asyncio
import threading

from aaiclick.telemetry.fields import about, bind_process, bound, bound_fields


def test_fields_are_bound_for_as_long_as_they_last() -> None:
    with bound(job=1, task=2):
        with bound(task=3, worker=None):
            assert bound_fields() == {"job": "1", "task": "3"}
        assert bound_fields() == {"job": "1", "task": "2"}
    assert bound_fields() == {}


def test_a_field_may_be_known_later() -> None:
    ids: list[int] = []
    with bound(worker=lambda: ids[0] if ids else None):
        assert bound_fields() == {}
        ids.append(7)
        assert bound_fields() == {"worker": "7"}


async def test_what_is_begun_inside_carries_them_and_others_do_not() -> None:
    async def asked() -> dict[str, str]:
        await asyncio.sleep(0)
        return bound_fields()

    with bound(task=1):
        inside = asyncio.create_task(asked())
    assert (await inside, await asked()) == ({"task": "1"}, {})


def test_those_of_a_process_are_for_all_its_threads() -> None:
    seen: list[dict[str, str]] = []
    bind_process(task=5)
    try:
        thread = threading.Thread(target=lambda: seen.append(bound_fields()))
        thread.start()
        thread.join()
    finally:
        bind_process()
    assert seen == [{"task": "5"}]
    assert bound_fields() == {}


def test_one_line_may_be_about_something() -> None:
    assert about(job=3) == {"aaiclick_fields": {"job": 3}}
