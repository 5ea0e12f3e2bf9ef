"""The ids of a trace follow from the job and its runs; nothing is loaded unless it is wanted."""

from __future__ import annotations

import subprocess
import sys

import pytest

from aaiclick.config import reset_settings
from aaiclick.errors import MissingExtra
from aaiclick.telemetry import traces
from aaiclick.telemetry.traces import RunKey, Step, span_id_of, trace_id_of, tracing


def test_ids_are_the_same_everywhere_and_differ_from_each_other() -> None:
    run, other = RunKey(1, 2, 3), RunKey(1, 2, 4)
    assert (trace_id_of(1), span_id_of(Step.RUN, run)) == (
        0xBE7A58A5A872A90EAA317C0AC4AFFAD0,
        0x930259D25D81902F,
    )
    ids = [span_id_of(step, each) for step in Step for each in (run, other)]
    assert len(set(ids)) == 7  # both are of one job, which was submitted once
    assert all(0 < each < 2**64 for each in ids)
    assert span_id_of(Step.RUN, run) == span_id_of(Step.RUN, RunKey(99, 2, 3))
    assert trace_id_of(1) != trace_id_of(2)


def test_they_are_off_unless_they_are_wanted() -> None:
    reset_settings()
    assert tracing() is None


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_OTEL", "1")
    monkeypatch.setitem(sys.modules, "aaiclick.telemetry.spans", None)
    monkeypatch.setattr(traces, "_spans", [])
    reset_settings()
    with pytest.raises(ModuleNotFoundError):  # ours is missing: that is a fault
        tracing()
    monkeypatch.delitem(sys.modules, "aaiclick.telemetry.spans")
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingExtra, match=r"aaiclick\[otel\]"):
        tracing()


OFF = """
import sys
from aaiclick.orchestration import create_task, job_test, task, job, worker_main_loop
import aaiclick.orchestration.execution.executors.process, aaiclick.orchestration.control.control_loop
from aaiclick.orchestration.examples import orchestration_basic
from aaiclick.orchestration import ajob_test
import asyncio
from aaiclick.telemetry.traces import tracing
assert tracing() is None
done = job_test(orchestration_basic.pipeline, x=1, y=2)
assert done.status == "completed", done
heavy = [name for name in sys.modules if name.split(".")[0] in ("opentelemetry", "requests", "google")]
assert not heavy, heavy
"""


def test_whoever_does_not_want_them_loads_nothing_of_it(tmp_path: object) -> None:
    env = {"PATH": "", "HOME": str(tmp_path), "AAICLICK_LOCAL_ROOT": f"{tmp_path}/root"}
    ran = subprocess.run([sys.executable, "-c", OFF], env=env, capture_output=True, text=True, timeout=100)
    assert ran.returncode == 0, ran.stderr
