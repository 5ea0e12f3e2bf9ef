"""Ids as people type them."""

from __future__ import annotations

import pytest

from aaiclick.errors import InputError, NotFound
from aaiclick.orchestration import create_job, create_task, register_worker
from aaiclick.orchestration.access.tokens import create_token
from aaiclick.orchestration.queries.short_ids import find_id
from tests.migrations.pictures import run
from tests.support.front_door import local, state

__all__ = ["local", "state"]

FAIL = "tests.server.outside_flows.fail"


async def numbered(url: str, *ids: int) -> None:
    """Jobs with these ids."""
    for wanted in ids:
        job = await create_job("x", FAIL)
        await run(url, f"UPDATE jobs SET id = {wanted} WHERE id = {job.id}")


async def test_whole_or_by_as_few_digits_as_tell_it_from_others(state: str) -> None:
    await numbered(state, 380467616543170001, 380467616543180001, 380467616543170042)
    assert await find_id("job", "380467616543170042") == 380467616543170042
    assert await find_id("job", "0042") == 380467616543170042
    assert await find_id("job", "70001") == 380467616543170001
    assert await find_id("job", "80467616543180001") == 380467616543180001
    with pytest.raises(InputError, match="380467616543170001, 380467616543180001") as refused:
        await find_id("job", "0001")
    assert refused.value.exit_code == 2


async def test_of_every_kind(state: str) -> None:
    task = create_task(FAIL)
    job = await create_job("x", tasks=[task])
    worker, token = await register_worker(), (await create_token("x")).token
    for kind, whole in (("job", job.id), ("task", task.id), ("worker", worker.id), ("token", token.id)):
        assert await find_id(kind, str(whole)[-9:]) == whole  # type: ignore[arg-type]


async def test_a_whole_id_is_itself_though_others_end_so(local: object) -> None:
    from aaiclick.backend import get_db_url

    await create_job("x", FAIL)
    await numbered(get_db_url(), 70001, 380467616543170001)
    assert await find_id("job", "70001") == 70001
    assert await find_id("job", "170001") == 380467616543170001


async def test_many_candidates_are_not_all_named(local: object) -> None:
    from aaiclick.backend import get_db_url

    await create_job("x", FAIL)
    await numbered(get_db_url(), *(number * 10000 + 1234 for number in range(10, 18)))
    with pytest.raises(InputError, match=r"digits: (\d\d1234, ){5}…"):
        await find_id("job", "1234")


async def test_what_is_not_there_and_what_is_no_id(local: object) -> None:
    for text in ("12345", "00012345", "9" * 18, "9000000000000000000"):
        with pytest.raises(NotFound, match=f"No job with id {text}"):
            await find_id("job", text)
    for text in ("", "0", "1", "999", "-1", "1e5", "12 34", "٣٣٣٣", "1_000", "9223372036854775808", "1" * 5000):
        with pytest.raises(InputError) as refused:
            await find_id("job", text)
        assert len(str(refused.value)) < 200
