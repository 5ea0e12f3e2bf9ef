"""`aaiclick register-job`, `registered-job`, `job enable` and `job disable`"""

import asyncio
import inspect

import pytest

from aaiclick.cli.jobs import registered_job
from aaiclick.orchestration import get_job
from aaiclick.orchestration.registered_jobs import OPTIONS
from tests.cli.conftest import Cli

HERE = "tests.orchestration.scheduled_flows"
PLAIN = f"{HERE}.plain"


def test_a_job_is_registered_and_its_next_times_are_shown(cli: Cli) -> None:
    made = cli("register-job", PLAIN, "--schedule", "30 2 * * *", "--timezone", "Europe/Berlin", "--kwargs", '{"x": 5}')
    assert made.code == 0
    facts = dict(line.split(maxsplit=1) for line in made.out.splitlines() if " " in line)
    assert (facts["name"], facts["schedule"], facts["default_kwargs"]) == ("plain", "30 2 * * *", '{"x": 5}')
    times = [line for line in made.out.splitlines() if line.startswith("next ")]
    assert len(times) == 5
    assert all(line.endswith(("+01:00", "+02:00")) for line in times)


def test_as_json(cli: Cli) -> None:
    made = cli("register-job", PLAIN, "--name", "a b", "--schedule", "@daily", "--preservation-mode", "full", "--json")
    assert (made.code, made.err) == (0, "")
    assert (made.data["name"], made.data["enabled"], made.data["preservation_mode"]) == ("a b", True, "full")
    assert len(made.data["next_runs"]) == 5
    assert cli("registered-job", "get", "a b", "--json").data == made.data
    (listed,) = cli("registered-job", "list", "--json").data["registered_jobs"]
    assert listed == {field: value for field, value in made.data.items() if field != "next_runs"}


def test_a_name_that_is_taken_is_a_conflict_unless_it_is_to_be_updated(cli: Cli) -> None:
    cli("register-job", PLAIN)
    again = cli("register-job", PLAIN)
    assert (again.code, again.out) == (5, "")
    assert "a registered job has that name already" in again.err
    changed = cli("register-job", PLAIN, "--update", "--schedule", "@hourly", "--overlap", "skip", "--json")
    assert (changed.code, changed.data["schedule"], changed.data["overlap"]) == (0, "@hourly", "skip")


def test_enable_and_disable(cli: Cli) -> None:
    cli("register-job", PLAIN, "--schedule", "@daily", "--disabled")
    assert cli("registered-job", "list", "--enabled-only").err == "no registered jobs\n"
    on = cli("job", "enable", "plain")
    assert on.code == 0
    assert "is enabled; it fires next at" in on.err
    assert cli("registered-job", "list").err == "1 registered job\n"
    off = cli("job", "disable", "plain", "--json")
    assert (off.data["enabled"], off.data["next_run_at"]) == (False, None)
    assert cli("job", "disable", "plain").err == "Registered job 'plain' is disabled.\n"


def test_the_list_has_a_line_for_each(cli: Cli) -> None:
    for name in ("b", "a"):
        cli("register-job", PLAIN, "--name", name, "--schedule", "0 8 * * *")
    header, *rows = [line.split("\t") for line in cli("registered-job", "list").out.splitlines()]
    assert header == ["name", "enabled", "schedule", "timezone", "next_run_at", "entrypoint"]
    assert [row[:4] for row in rows] == [["a", "True", "0 8 * * *", "UTC"], ["b", "True", "0 8 * * *", "UTC"]]


def test_past_times_are_shown_and_run(cli: Cli) -> None:
    cli("register-job", PLAIN, "--schedule", "0 8 * * *")
    span = ("--start", "2026-01-01T00:00:00+00:00", "--end", "2026-01-04T00:00:00+00:00")
    planned = cli("registered-job", "backfill", "plain", *span, "--dry-run")
    assert planned.out.splitlines()[1] == "2026-01-01T08:00:00Z\tnew\tyes\t"
    assert planned.err == "3 times would run.\n"
    assert len(cli("registered-job", "backfill", "plain", *span, "--dry-run", "--json").data["times"]) == 3
    made = cli("registered-job", "backfill", "plain", *span, "--parallel", "2", "--json")
    assert (made.data["status"], made.data["parallel_max"]) == ("running", 2)
    assert "parallel_max" in cli("registered-job", "backfill", "plain", *span).out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("register-job", PLAIN, "--schedule", "61 * * * *"), 2, "schedule minute: '61'"),
        (("register-job", PLAIN, "--schedule", "0 0 30 2 *"), 2, "never occurs"),
        (("register-job", PLAIN, "--timezone", "../../etc/passwd"), 2, "timezone: "),
        (("register-job", PLAIN, "--kwargs", "[1]"), 2, "--kwargs: '[1]'"),
        (("register-job", PLAIN, "--kwargs", "{"), 2, "it is not JSON"),
        (("register-job", PLAIN, "--kwargs", '{"x": NaN}'), 2, "NaN is not a number"),
        (("register-job", PLAIN, "--kwargs", '{"x": 1, "y": {"z": 1, "z": 2}}'), 2, "'z' is given twice"),
        (("register-job", PLAIN, "--kwargs", '{"password": "x1y2",}'), 2, '{"password": "***",}'),
        (("register-job", PLAIN, "--name", ""), 2, "Job name: ''"),
        (("register-job", PLAIN, "--kwargs", "[" * 100_000), 2, "nested too deeply"),
        (("register-job", PLAIN, "--kwargs", '{"z": 1}'), 2, "unexpected: 'z'"),
        (("register-job", f"{HERE}.nowhere"), 2, "has no nowhere"),
        (("register-job", PLAIN, "--overlap", "maybe"), 2, "overlap: 'maybe'"),
        (("registered-job", "get", "nobody"), 3, "No registered job with name nobody"),
        (("job", "enable", "nobody"), 3, "No registered job"),
        (("registered-job", "backfill", "nobody", "--start", "x", "--end", "y"), 2, "--start: 'x'"),
        (("registered-job", "backfill", "a", "--start", "2026-01-01", "--end", "2026-01-02"), 3, "No registered job"),
    ],
)
def test_refusals_are_one_line(cli: Cli, arguments: tuple[str, ...], code: int, said: str) -> None:
    answer = cli(*arguments)
    assert (answer.code, answer.out) == (code, "")
    assert said in answer.err
    assert answer.err.count("\n") == 1


def test_every_option_of_an_entry_can_be_said(cli: Cli) -> None:
    said = ("--priority", "7", "--timeout-s", "90.5", "--fail-fast", "--keep-last", "3")
    made = cli("register-job", PLAIN, *said, "--json").data
    assert (made["priority"], made["timeout_s"], made["fail_fast"], made["keep_last"]) == (7, 90.5, True, 3)
    assert cli("register-job", PLAIN, "--update", "--json").data["keep_last"] is None
    other = cli("register-job", PLAIN, "--name", "other", "--no-fail-fast", "--json").data
    assert (other["priority"], other["timeout_s"], other["fail_fast"]) == (0, None, False)
    assert cli("register-job", PLAIN, "--name", "x", "--timeout-s", "nan").code == 2


def test_the_command_takes_what_the_function_takes() -> None:
    taken = set(inspect.signature(registered_job.register_job).parameters)
    known = {"entrypoint", "name", "schedule", "preservation_mode", *OPTIONS} - {"resources"}
    assert known <= taken
    assert taken - known == {"kwargs", "disabled", "update", "as_json", "resource"}


def test_a_run_has_a_priority_and_a_time_of_its_own(cli: Cli) -> None:
    cli("register-job", PLAIN)
    run = cli("run-job", "plain", "--kwargs", '{"x": 1}', "--priority", "3", "--timeout-s", "60", "--json").data
    found = asyncio.run(get_job(int(run["id"])))
    assert found is not None
    assert (found.priority, found.timeout_s) == (3, 60)
