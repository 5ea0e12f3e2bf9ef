"""`aaiclick job graph`"""

import asyncio
import sys

import pytest

from aaiclick.backend import get_db_url
from aaiclick.cli.jobs import graph
from aaiclick.orchestration import Group, create_job, create_task
from aaiclick.orchestration.models import Job
from tests.cli.conftest import Cli
from tests.cli.test_output import Terminal
from tests.migrations.pictures import run

WORK = "tests.cli.jobs.test_job.work"


def submit(count: int = 2) -> Job:
    async def work() -> Job:
        first = create_task(WORK, name="read [red]")
        with Group("parts") as group:
            for number in range(count):
                create_task(WORK, name=f"part {number}")
        first >> group
        return await create_job("report", tasks=[first, group])

    return asyncio.run(work())


def test_the_tree(cli: Cli) -> None:
    job = submit()
    lines = cli("job", "graph", str(job.id)[-10:]).out.splitlines()
    assert lines[0] == f"report ({job.id}) pending 0/3"
    assert lines[1].startswith("├─ read [red]  pending  (")
    assert lines[2] == "└─ parts/  (2 pending) ← read [red]"
    assert [line[:17] for line in lines[3:]] == ["   ├─ part 0  pen", "   └─ part 1  pen"]


def test_a_terminal_shows_colours_and_takes_no_markup(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    job = submit()
    asyncio.run(run(get_db_url(), "UPDATE tasks SET status = 'failed', name = name || char(27) || '[2J'"))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for no_color in (False, True):
        if no_color:
            monkeypatch.setenv("NO_COLOR", "1")
        screen = Terminal()
        monkeypatch.setattr(sys, "stdout", screen)
        graph.graph(str(job.id))
        assert "read [red]\\x1b[2J" in screen.getvalue()
        assert ("\x1b[31mfailed" in screen.getvalue().replace("  ", "")) is not no_color
        assert ("\x1b" in screen.getvalue()) is not no_color


def test_the_whole_graph_as_json(cli: Cli) -> None:
    job = submit(30)
    shown = cli("job", "graph", str(job.id), "--json").data
    assert {name: len(rows) for name, rows in shown.items()} == {"tasks": 31, "groups": 1, "dependencies": 1}
    (edge,), (group,) = shown["dependencies"], shown["groups"]
    assert (edge["next_id"], edge["next_type"]) == (group["id"], "group")
    assert shown["tasks"][0] == {
        "id": edge["previous_id"],
        "name": "read [red]",
        "status": "pending",
        "group_id": None,
        "parent_task_id": None,
        "attempt": 0,
        "started_at": None,
        "completed_at": None,
        "when": "all_completed",
    }


def test_for_programs_that_draw(cli: Cli) -> None:
    job = submit(30)
    assert cli("job", "graph", str(job.id), "--format", "dot").out.startswith("digraph job {\n")
    mermaid = cli("job", "graph", str(job.id), "--format", "mermaid")
    assert "parts (30 pending)" in mermaid.out
    assert mermaid.err == ""
    assert "part 29" in cli("job", "graph", str(job.id), "--format", "mermaid", "--all").out


def test_what_is_cut_is_said(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [{"entrypoint": WORK, "name": f"t{number}"} for number in range(250)]
    job = asyncio.run(create_job("wide", tasks=tasks))
    assert cli("job", "graph", str(job.id), "--format", "dot").err == (
        "Not shown: 50 pending (--all shows everything)\n"
    )
    monkeypatch.setattr(graph, "is_terminal", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert cli("job", "graph", str(job.id)).out.endswith("└─ … 190 more tasks: 190 pending\n")


def test_what_is_refused(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    job = submit()
    assert cli("job", "graph", "12345").code == 3
    assert cli("job", "graph", "x").code == 2
    assert cli("job", "graph", str(job.id), "--format", "pdf").code == 2
    monkeypatch.setattr(graph, "TASKS_MAX", 2)
    large = cli("job", "graph", str(job.id))
    assert large.code == 5
    assert "it has 3 tasks, more than 2" in large.err


def test_it_answers_the_same_on_every_database(cli: Cli, on_url, migrated_sql_url: str) -> None:
    on_url(migrated_sql_url)
    job = submit()
    assert len(cli("job", "graph", str(job.id)[-12:]).out.splitlines()) == 5
    assert len(cli("job", "graph", str(job.id), "--json").data["tasks"]) == 3


def test_a_pipe_gets_the_whole_tree(cli: Cli) -> None:
    job = submit(1000)
    assert len(cli("job", "graph", str(job.id)).out.splitlines()) == 1003
