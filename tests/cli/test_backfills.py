"""`aaiclick registered-job backfills` and `cancel-backfill`"""

import pytest

from tests.cli.conftest import Cli

PLAIN = "tests.orchestration.scheduled_flows.plain"
SPAN = ("--start", "2026-03-01T00:00:00+00:00", "--end", "2026-03-04T00:00:00+00:00")


@pytest.fixture
def made(cli: Cli) -> str:
    """The id of a backfill of three days."""
    cli("register-job", PLAIN, "--schedule", "@daily")
    found: str = cli("registered-job", "backfill", "plain", *SPAN, "--json").data["id"]
    return found


def test_they_are_listed_the_newest_first(cli: Cli, made: str) -> None:
    newer = cli("registered-job", "backfill", "plain", *SPAN, "--json").data["id"]
    header, *rows = [line.split("\t") for line in cli("registered-job", "backfills", "plain").out.splitlines()]
    assert header == ["id", "status", "start_at", "end_at", "next_at", "parallel_max", "created_at"]
    assert [row[:2] for row in rows] == [[newer, "running"], [made, "running"]]
    listed = cli("registered-job", "backfills", "plain", "--limit", "1", "--offset", "1", "--json")
    assert [each["id"] for each in listed.data["backfills"]] == [made]
    assert listed.data["backfills"][0]["next_at"] == "2026-03-01T00:00:00+00:00"


def test_one_is_stopped_by_the_end_of_its_id(cli: Cli, made: str) -> None:
    stopped = cli("registered-job", "cancel-backfill", made[-8:])
    assert stopped == (0, "", f"Backfill {made} starts no more runs.\n")
    again = cli("registered-job", "cancel-backfill", made, "--json")
    assert again.data == {"id": made, "cancelled": False}
    (listed,) = cli("registered-job", "backfills", "plain", "--json").data["backfills"]
    assert listed["status"] == "cancelled"


def test_what_is_not_there(cli: Cli) -> None:
    assert cli("registered-job", "backfills", "nobody").code == 3
    assert cli("registered-job", "cancel-backfill", "12345").code == 3
    assert cli("registered-job", "cancel-backfill", "x").code == 2
