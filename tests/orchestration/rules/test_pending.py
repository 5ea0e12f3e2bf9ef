"""What holds a task back first, and how that is said."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from aaiclick.orchestration.rules.node_standings import NodeStanding
from aaiclick.orchestration.rules.pending import Blocker, Facts, Fleet, Holder, Reason, judge
from aaiclick.orchestration.rules.states import JobStatus, TaskStatus

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(seconds=90)
FREE = Facts(1, 2, "load", TaskStatus.PENDING, JobStatus.RUNNING, NOW, in_queue=True, before_max=1000)
THERE = Holder(7, "w1", "there", 42, is_live=True)
GONE = replace(THERE, is_live=False)
IDLE = Fleet(live=2, slots=8, taken=3)
EXTRACT = Blocker(5, "task", "extract", "running")
SOURCES = Blocker(6, "group", "sources", "open", 3, gate="all loads")
NEEDS = {"where": [["gpu", "==", "nvidia"]]}
LACKS = NodeStanding("box", "healthy", "open", ["gpu is none, needed is gpu == nvidia"])
FULL = NodeStanding("gpu-1", "healthy", "open", ["it runs 1 tasks of this function, allowed are 1"], is_full=True)
LEAVES = NodeStanding("gpu-3", "healthy", "open", [], later="node gpu-9 ran the last attempt")
FITS = NodeStanding("gpu-2", "healthy", "open", [])

CASES: list[tuple[dict[str, Any], Reason, str]] = [
    ({"status": TaskStatus.COMPLETED}, Reason.ENDED, "it is completed"),
    ({"status": TaskStatus.FAILED, "error": "ValueError: no\nmore"}, Reason.ENDED, "it is failed: ValueError: no"),
    (
        {"status": TaskStatus.UPSTREAM_FAILED, "blockers": [replace(EXTRACT, status="failed")]},
        Reason.ENDED,
        "it is upstream_failed: task 'extract' (failed)",
    ),
    (
        {"status": TaskStatus.RUNNING, "holder": THERE, "claimed_at": NOW - timedelta(seconds=61)},
        Reason.HELD,
        "it runs on worker w1 on there, pid 42, which has it for 61 s",
    ),
    (
        {"status": TaskStatus.CLAIMED, "holder": GONE, "has_leader": True},
        Reason.HELD,
        "it is claimed by worker w1 on there, pid 42; that worker is gone: the leader gives it to others",
    ),
    (
        {"status": TaskStatus.PENDING_CLEANUP},
        Reason.CLEANUP,
        "its worker was lost: the leader cleans up after it, and no process leads. Run: aaiclick worker start",
    ),
    ({"job_status": JobStatus.CANCELLED}, Reason.JOB_ENDED, "its job is cancelled"),
    (
        {"unmet": True, "blockers": [EXTRACT, SOURCES], "more": 12},
        Reason.WAITS,
        "it waits for task 'extract' (running), group 'sources' (3 of its parts open), before the group 'all loads',"
        " and 12 more",
    ),
    ({"unmet": True, "is_cut": True, "more": 3}, Reason.WAITS, "it waits for 3 of very many tasks and groups"),
    (
        {"unmet": True, "has_leader": True},
        Reason.NEWS,
        "everything it waits for is complete, but it has not been told yet: the leader tells it",
    ),
    (
        {"run_after": LATER},
        Reason.DELAYED,
        "it may not run before 2026-11-16T12:01:30+00:00, in 90 s",
    ),
    (
        {"run_after": NOW, "has_leader": True},
        Reason.DELAYED,
        "its time has come: the leader lets it be claimed",
    ),
    (
        {"in_queue": False, "has_leader": True},
        Reason.UNQUEUED,
        "nothing holds it, and it is not in the queue: the leader puts it there",
    ),
    (
        {"kept_by": THERE},
        Reason.RESERVED,
        "its job is reserved for the process that runs it with job_test, worker w1 on there, pid 42",
    ),
    (
        {"kept_by": GONE, "has_leader": True},
        Reason.RESERVED,
        "its job is reserved for the process that runs it with job_test, worker w1 on there, pid 42;"
        " that process is gone: the leader cancels the job",
    ),
    ({}, Reason.NO_WORKER, "it is ready (next in line), and no worker is live. Run: aaiclick worker start"),
    (
        {"fleet": Fleet(live=2, draining=2), "before": 4},
        Reason.DRAINING,
        "it is ready (4 before it), and all live workers (2) are draining or cordoned",
    ),
    (
        {"fleet": Fleet(live=3, draining=1, full=2, slots=8, taken=8), "before": 1000},
        Reason.BUSY,
        "it is ready (1000 or more before it), and all 8 slots of 2 live workers are taken",
    ),
    ({"fleet": IDLE}, Reason.IN_LINE, "it is ready, and a worker will take it: next in line"),
    (
        {"fleet": IDLE, "needs": NEEDS, "nodes": [LACKS]},
        Reason.PLACEMENT,
        "it is ready, and no node may run it: box (gpu is none, needed is gpu == nvidia)",
    ),
    (
        {"fleet": IDLE, "needs": NEEDS},
        Reason.PLACEMENT,
        "it is ready, and no node may run it: no node is registered",
    ),
    (
        {"fleet": IDLE, "needs": NEEDS, "nodes": [LACKS, FULL]},
        Reason.LIMITED,
        "it is ready (next in line), and the nodes that meet its needs are full:"
        " gpu-1 (it runs 1 tasks of this function, allowed are 1)",
    ),
    (
        {"in_queue": True, "fleet": Fleet(live=1, slots=1), "needs": {"gpu": 1}, "nodes": [LACKS, LEAVES]},
        Reason.WISHED,
        "it is ready, and the nodes that may run it leave it to others for now:"
        " box (gpu is none, needed is gpu == nvidia), gpu-3 (node gpu-9 ran the last attempt)",
    ),
    (
        {"fleet": IDLE, "needs": NEEDS, "nodes": [LACKS, FULL, FITS]},
        Reason.IN_LINE,
        "it is ready, and a worker will take it: next in line",
    ),
    (
        {"needs": NEEDS, "nodes": [LACKS]},
        Reason.NO_WORKER,
        "it is ready (next in line), and no worker is live. Run: aaiclick worker start",
    ),
]


@pytest.mark.parametrize(("facts", "reason", "line"), CASES)
def test_each_reason_has_its_line(facts: dict[str, Any], reason: Reason, line: str) -> None:
    found = judge(replace(FREE, **facts))
    assert (found.reason, found.line) == (reason, line)


def test_every_reason_is_tried() -> None:
    assert {reason for _, reason, _ in CASES} == set(Reason)


def test_what_comes_first_is_told() -> None:
    """What is blocked, delayed and reserved waits first of all for what comes before it."""
    everything = replace(FREE, unmet=True, blockers=[EXTRACT], run_after=LATER, kept_by=THERE)
    assert judge(everything).reason is Reason.WAITS
    assert judge(replace(everything, unmet=False, blockers=[])).reason is Reason.DELAYED


def test_programs_get_the_facts() -> None:
    waits = judge(replace(FREE, run_after=LATER, in_queue=False))
    assert (waits.run_after, waits.delay_s, waits.before) == (LATER, 90.0, None)
    ready = judge(replace(FREE, fleet=IDLE, before=3))
    assert (ready.before, ready.live_workers, ready.slots, ready.slots_taken) == (3, 2, 8, 3)
    assert judge(replace(FREE, kept_by=THERE)).worker_id == 7
    assert judge(replace(FREE, status=TaskStatus.RUNNING, holder=GONE)).worker_id == 7
    late = judge(replace(FREE, run_after=NOW - timedelta(days=1)))
    assert late.delay_s == 0.0


def test_names_do_not_steer_the_terminal() -> None:
    found = judge(replace(FREE, unmet=True, blockers=[replace(EXTRACT, name="a\x1b[2Jb")]))
    assert "\x1b" not in found.line
