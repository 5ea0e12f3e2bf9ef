"""`aaiclick prune`"""

import asyncio
from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from aaiclick.config import settings
from aaiclick.orchestration.control.pruning import KINDS
from aaiclick.orchestration.factories import create_job
from aaiclick.orchestration.jobs import cancel_job
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events, jobs
from tests.cli.conftest import Cli

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def work() -> None:
    """A task's body; none is run here."""


async def _leave_an_old_job() -> None:
    job = await create_job("report", tasks=[{"entrypoint": f"{__name__}.work"}])
    await cancel_job(job.id)
    database = await Database.open(settings().sql_url)
    try:

        async def grow_old(session: Session) -> None:
            await session.run(update(jobs).values(created_at=LONG_AGO, completed_at=LONG_AGO))
            await session.run(update(events).values(at=LONG_AGO))

        await database.transact(grow_old)
    finally:
        await database.close()


def test_a_dry_run_says_what_would_go_and_nothing_goes(cli: Cli) -> None:
    asyncio.run(_leave_an_old_job())
    assert cli("prune", "--dry-run", "--json").code == 0
    shown = cli("prune", "--dry-run", "--json")
    assert (shown.code, shown.err) == (0, "")
    assert shown.data["dry_run"] is True
    assert set(shown.data["counts"]) == set(KINDS)
    assert (shown.data["counts"]["jobs"], shown.data["counts"]["tasks"]) == (1, 1)
    gone = cli("prune", "--json")
    assert gone.data == {"dry_run": False, "counts": shown.data["counts"]}
    assert "so far" in gone.err
    assert cli("job", "list", "--json").data["jobs"] == []


def test_for_people(cli: Cli) -> None:
    asyncio.run(_leave_an_old_job())
    answer = cli("prune", "--dry-run")
    assert answer.out.splitlines()[:2] == ["kind\twould go", "jobs\t1"]
    assert cli("prune").out.splitlines()[:2] == ["kind\tgone", "jobs\t1"]
    again = cli("prune")
    assert (again.code, again.err) == (0, "Nothing is old enough to be removed.\n")


def test_a_database_that_cannot_be_reached(cli: Cli, on_url) -> None:
    on_url("postgresql://nobody@127.0.0.1:1/none")
    assert cli("prune").code == 6


@pytest.mark.parametrize("given", ["-1", "x", "1e3", "999999999999"])
def test_an_age_that_is_none(cli: Cli, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("AAICLICK_HISTORY_TTL", given)
    answer = cli("prune")
    assert answer.code != 0
    assert "AAICLICK_HISTORY_TTL" in answer.err
