"""What is gathered of what was made; see test_context for what `apply` does with it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from aaiclick.errors import NoContext
from aaiclick.orchestration import Context, Group, Task, get_current_context, get_current_job_id
from aaiclick.orchestration.gathering import Staging, gather, staged_in
from tests.support.orchestra import make


def test_gathering_a_long_chain_is_not_recursive() -> None:
    nodes = [Task("some.module.f") for _ in range(20_000)]
    for previous, following in pairwise(nodes):
        previous >> following
    submission = gather(1, [nodes[-1]])
    assert len(submission.tasks) == 20_000
    assert len(submission.edges) == 19_999


def test_gathering_deep_nesting_is_not_recursive() -> None:
    groups = [Group("outermost")]
    for _ in range(5_000):
        groups.append(Group("inner", parent_group_id=groups[-1].id))
    assert len(gather(1, [make(group_id=groups[-1].id)]).groups) == 5_001


async def test_inside_of_a_run_the_context_around_is_that_of_its_job() -> None:
    outside = Context(3)
    async with outside:
        with staged_in(Staging(7, most=9)):
            context = get_current_context()
            assert (context.job_id, get_current_job_id()) == (7, 7)
            assert get_current_context() is context
        assert get_current_context() is outside
    with pytest.raises(NoContext):
        get_current_context()
