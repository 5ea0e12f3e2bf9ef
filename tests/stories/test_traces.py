"""One trace across processes: who submits, the worker, and the child that runs the body."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from aaiclick.telemetry.traces import trace_id_of
from tests.support import warm
from tests.support.traced import Received, receiving

ROOT = Path(__file__).parents[2]
SUBMIT = """
import asyncio
from aaiclick.orchestration import Secret, create_job, create_task
entry = create_task("tests.support.traced.query", {"secret": Secret("env:CANARY_SECRET")})
print(asyncio.run(create_job("traced", entry)).id)
"""


def run(*command: str, env: dict[str, str]) -> str:
    ran = warm.run([sys.executable, *command], env=env, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_spans_of_all_processes_make_one_trace(tmp_path: Path) -> None:
    with receiving() as receiver:
        env = os.environ | {
            "PYTHONPATH": str(ROOT),
            "AAICLICK_LOCAL_ROOT": str(tmp_path / "root"),
            "AAICLICK_OTEL": "1",
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint,
            "CANARY_SECRET": "canary-in-a-trace",
        }
        env.pop("AAICLICK_SQL_URL", None)
        job_id = int(run("-c", SUBMIT, env=env))
        run("-m", "aaiclick", "worker", "start", "--concurrency", "1", "--max-tasks", "1", env=env)
    found: dict[str, Received] = {span.name: span for span in receiver.spans}
    assert sorted(span.name for span in receiver.spans) == ["claim", "query", "report", "run", "submit"]
    assert {span.trace for span in receiver.spans} == {f"{trace_id_of(job_id):032x}"}
    parents = {name: found[name].parent for name in found}
    assert parents == {
        "submit": "",
        "claim": found["submit"].span,
        "run": found["claim"].span,
        "report": found["run"].span,
        "query": found["run"].span,  # made in the child, by the body
    }
    assert found["run"].service == "aaiclick"
    assert not any(b"canary-in-a-trace" in body for body in receiver.bodies)


def test_a_collector_that_is_not_there_holds_nothing_up(tmp_path: Path) -> None:
    env = os.environ | {
        "PYTHONPATH": str(ROOT),
        "AAICLICK_LOCAL_ROOT": str(tmp_path / "root"),
        "AAICLICK_OTEL": "1",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
        "CANARY_SECRET": "canary-in-a-trace",
    }
    env.pop("AAICLICK_SQL_URL", None)
    assert int(run("-c", SUBMIT, env=env)) > 0
