"""How many statements of ClickHouse an operator takes: each costs a worker, however few the rows."""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from aaiclick.data.clients.local import LocalClient
from aaiclick.orchestration import ajob_test
from aaiclick.orchestration.execution.runs import pipeline
from tests.orchestration import operator_flows as flows
from tests.support.front_door import local

__all__ = ["local"]

HERE = "tests.orchestration.operator_flows."
VERBS = ("command", "rows", "make", "arrow", "insert")

Statements = dict[str, list[list[str]]]
"""The statements of each run, by the name of the function; dropping what is not needed any more does not count."""


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Statements:
    found: Statements = {}
    current: ContextVar[list[str]] = ContextVar("the statements of a run")
    through = pipeline._through

    async def noted_run(run: pipeline.PipelineRun, caller: pipeline.Caller) -> Any:
        mine: list[str] = []
        found.setdefault(run.claim.entrypoint.rpartition(".")[2], []).append(mine)
        token = current.set(mine)
        try:
            return await through(run, caller)
        finally:
            current.reset(token)

    def noted(verb: str) -> Any:
        ask = getattr(LocalClient, verb)

        async def asked(self: LocalClient, sql: str, *given: Any, **named: Any) -> Any:
            current.get([]).append(f"{verb} {sql}")
            return await ask(self, sql, *given, **named)

        return asked

    monkeypatch.setattr(pipeline, "_through", noted_run)
    for verb in VERBS:
        monkeypatch.setattr(LocalClient, verb, noted(verb))
    return found


async def counts_of(found: Statements, verb: str, callback: str, **options: Any) -> dict[str, list[int]]:
    ended = await ajob_test(await flows.apply_one.submit(verb, HERE + callback, 12, options))
    assert ended.status == "completed", ended.error
    return {name: [len(run) for run in runs] for name, runs in found.items() if name.startswith("_")}


async def test_a_part_of_map_reads_makes_a_table_and_inserts(local: Path, statements: Statements) -> None:
    counts = await counts_of(statements, "map", "double", partition=4)
    assert counts["_map_part"] == [3] * 3, statements
    assert counts["_expand_map"] == [2], statements  # the numbered copy, and how much there is
    assert counts["_collect"] == [1 + 3], statements  # the table, and an ATTACH for each part


async def test_an_only_part_makes_the_object_itself(local: Path, statements: Statements) -> None:
    assert await counts_of(statements, "map", "double") == {"_expand_map": [2], "_map_part": [3]}, statements
