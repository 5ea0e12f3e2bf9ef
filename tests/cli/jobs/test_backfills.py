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
    assert header == ["id", "status", "start_at", "end_at", "next_at", "parallel_max", "created_at", "counts"]
    assert [row[:2] for row in rows] == [[newer, "running"], [made, "running"]]
    listed = cli("registered-job", "backfills", "plain", "--limit", "1", "--offset", "1", "--json")
    assert [each["id"] for each in listed.data["backfills"]] == [made]
    assert listed.data["backfills"][0]["next_at"] == "2026-03-01T00:00:00Z"


def test_one_is_stopped_by_the_end_of_its_id(cli: Cli, made: str) -> None:
    stopped = cli("registered-job", "cancel-backfill", made[-8:])
    assert stopped == (0, "", f"Backfill {made} starts no more runs.\n")
    again = cli("registered-job", "cancel-backfill", made, "--json")
    assert again.data == {"id": made, "cancelled": False}
    (listed,) = cli("registered-job", "backfills", "plain", "--json").data["backfills"]
    assert listed["status"] == "cancelled"


def test_one_is_shown_with_its_times_by_what_became_of_them(cli: Cli, made: str) -> None:
    shown = cli("registered-job", "get-backfill", made[-8:], "--json").data
    assert (shown["id"], shown["total"], shown["counts"]) == (made, 3, {"waiting": 3})
    assert "3 waiting" in cli("registered-job", "get-backfill", made).out


def test_days_are_midnight_in_the_zone_of_the_schedule(cli: Cli) -> None:
    cli("register-job", PLAIN, "--schedule", "@daily", "--timezone", "Europe/Berlin")
    days = ("--start", "2026-03-28", "--end", "2026-03-31")
    planned = cli("registered-job", "backfill", "plain", *days, "--dry-run", "--json").data
    assert [each["time"] for each in planned["times"]] == [
        "2026-03-28T00:00:00+01:00",
        "2026-03-29T00:00:00+01:00",
        "2026-03-30T00:00:00+02:00",
    ]
    assert (planned["would_run"], planned["left_alone"]) == (3, {})
    made = cli("registered-job", "backfill", "plain", *days, "--force", "--json").data
    assert (made["start_at"], made["force"]) == ("2026-03-27T23:00:00Z", True)


@pytest.mark.parametrize("start", ["2026-13-01", "2026-03-01T00:00:00", "yesterday", "\u0662026-03-01"])
def test_what_is_no_day_and_no_time_is_refused(cli: Cli, start: str) -> None:
    cli("register-job", PLAIN, "--schedule", "@daily")
    refused = cli("registered-job", "backfill", "plain", "--start", start, "--end", "2026-03-04")
    assert refused.code == 2
    assert "start: " in refused.err


def test_force_and_failed_do_not_go_together(cli: Cli) -> None:
    cli("register-job", PLAIN, "--schedule", "@daily")
    assert cli("registered-job", "backfill", "plain", *SPAN, "--force", "--failed").code == 2


def test_times_are_listed(cli: Cli) -> None:
    cli("register-job", PLAIN, "--schedule", "@daily")
    assert cli("registered-job", "fires", "plain") == (0, "fire_at\toutcome\tjob_id\tbackfill_id\n", "no times\n")
    assert cli("registered-job", "fires", "plain", "--json").data == {"fires": [], "next": None}


def test_what_is_not_there(cli: Cli) -> None:
    assert cli("registered-job", "fires", "nobody").code == 3
    assert cli("registered-job", "get-backfill", "12345").code == 3
    assert cli("registered-job", "backfills", "nobody").code == 3
    assert cli("registered-job", "cancel-backfill", "12345").code == 3
    assert cli("registered-job", "cancel-backfill", "x").code == 2
