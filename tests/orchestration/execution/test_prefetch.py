"""The line in front of a worker's slots."""

from __future__ import annotations

from aaiclick.orchestration.execution.prefetch import AHEAD_MAX, AHEAD_S, WAIT_S_MAX, Prefetch
from aaiclick.orchestration.models import Claim


def claim(task: int) -> Claim:
    return Claim(task, 1, 1, 1, None, "t", "m.f", "{}", 0, None, 0, {}, {})


def taught(run_s: float, times: int = 200) -> Prefetch:
    line = Prefetch()
    for _ in range(times):
        line.learn(run_s)
    return line


async def test_nobody_waits_before_runs_are_known_to_be_short() -> None:
    assert Prefetch().length_wanted(100) == 0


async def test_the_shorter_the_runs_the_longer_the_line_up_to_a_limit() -> None:
    wanted = [taught(run_s).length_wanted(2) for run_s in (10 * AHEAD_S, AHEAD_S / 2.01, AHEAD_S / 10.01, 0.0)]
    assert wanted == [0, 4, 20, AHEAD_MAX]


async def test_one_long_run_among_many_short_ones_ends_the_line() -> None:
    line = taught(0.001)
    assert line.length_wanted(2)
    line.learn(5.0)
    assert not line.length_wanted(2)


async def test_first_come_first_served() -> None:
    line = Prefetch()
    for task in (3, 1, 2):
        line.join(claim(task), 0.0)
    assert line.leave((1, 1))
    assert not line.leave((1, 1))
    assert [line.next().task_id for _ in range(2)] == [3, 2]
    assert not line
    assert not line.filled.is_set()


async def test_those_who_wait_too_long_are_taken_out_and_no_more_are_wanted_for_a_while() -> None:
    line = taught(0.001)
    line.join(claim(1), 1.0)
    line.join(claim(2), 2.0)
    assert line.disperse(since=0.5) == []
    assert line.length_wanted(2)
    assert [each.task_id for each in line.disperse(since=1.0)] == [1]
    assert line.length_wanted(2) == 0
    assert line.filled.is_set()
    assert [each.task_id for each in line.disperse()] == [2]
    assert not line.filled.is_set()
    for _ in range(100):
        line.learn(0.001)
    assert line.length_wanted(2) > 0
    assert WAIT_S_MAX > AHEAD_S
