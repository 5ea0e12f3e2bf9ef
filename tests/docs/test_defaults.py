"""The table of defaults that differ from the specifications says what the code does."""

from pathlib import Path

import pytest

from aaiclick.config import reset_settings, settings
from aaiclick.orchestration.control.control_loop import EVERY_S
from aaiclick.orchestration.execution.worker import POLL_S_MAX

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "defaults.md"


def shown(column: int) -> dict[str, str]:
    rows = [line.strip("| \n").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return {row[0]: row[column] for row in rows[1:]}


def test_each_default_is_the_one_in_force(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for name in ("WORKER_HEARTBEAT_INTERVAL", "AAICLICK_SESSION_SECONDS", "WORKER_TASK_TIMEOUT", "WORKER_MAX_RETRIES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("JOB_DEFAULT_TIMEOUT", raising=False)
    reset_settings()
    chosen, here = settings(), shown(2)
    assert here["heartbeat of a worker"] == f"{chosen.beat_every_s:g} s"
    assert here["silence after which a worker is dead"] == f"{chosen.session_s:g} s"
    assert here["how often lost workers are looked for"] == f"{EVERY_S:g} s"
    assert f"every {POLL_S_MAX:g} s" in shown(4)["how often an idle worker looks for tasks"]
    assert (here["timeout of a task"], chosen.task_timeout_s) == ("no limit", None)
    assert (here["timeout of a job"], chosen.job_timeout_s) == ("no limit", None)
    assert here["retries of a failed task"] == str(chosen.retries_max)
    assert f"({chosen.crashes_max} and {chosen.losses_max} times)" in shown(4)["retries of a failed task"]
    reset_settings()
