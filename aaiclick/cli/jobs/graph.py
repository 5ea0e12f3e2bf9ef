"""`aaiclick job graph`: the tasks and groups of a job, and who waits for whom."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aaiclick.cli.afar import afar
from aaiclick.cli.event_loop import with_id
from aaiclick.cli.jobs.job import JobId
from aaiclick.cli.output import AsJson, cell, is_terminal, say, show_json, show_text
from aaiclick.errors import Conflict, InputError, NotFound

if TYPE_CHECKING:
    from aaiclick.cli.jobs.outlines import OutlineLine
    from aaiclick.orchestration.models import Job
    from aaiclick.orchestration.store.reading.job_graphs import JobGraph
    from aaiclick.representations.graphs import GraphAnswer

Rows = Sequence[Sequence[Any]]
"""Of the tasks, the groups and the dependencies."""

TASKS_MAX = 100_000
"""More are not read into memory to be drawn."""

STYLES = {
    "completed": "green",
    "failed": "red",
    "upstream_failed": "yellow",
    "running": "cyan",
    "claimed": "cyan",
    "skipped": "bright_black",
}


def graph(
    job_id: JobId,
    form: Annotated[str, typer.Option("--format", help="tree, dot (Graphviz) or mermaid.")] = "tree",
    everything: Annotated[bool, typer.Option("--all", help="Show everything, however large the graph is.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the graph of a job. For large graphs, terminals and drawings show folded groups and a count of the rest."""
    if form not in ("tree", "dot", "mermaid"):
        raise InputError(field="--format", value=form[:50], rule="it must be one of: tree, dot, mermaid", hint="")
    if as_json:
        show_json(with_id("job", job_id, _answer))
        return
    job, found = with_id("job", job_id, _read)
    if form == "tree":
        _show_tree(job, found, everything)
    else:
        _show_diagram(found, form, everything)


async def _answer(job_id: int) -> GraphAnswer:
    if (api := afar()) is not None:
        return await api.get_job_graph(job_id)
    from aaiclick.representations.graphs import graph_answer  # here, to keep start-up light

    return graph_answer((await _read_here(job_id))[1])


async def _read(job_id: int) -> tuple[Any, Rows]:
    if (api := afar()) is None:
        return await _read_here(job_id)
    job, graph = await api.get_job(job_id), await api.get_job_graph(job_id)
    rows: Iterable[Any] = graph.values()
    return rows_of(job), [[rows_of(each) for each in kind] for kind in rows]


async def _read_here(job_id: int) -> tuple[Job, JobGraph]:
    from aaiclick.orchestration.jobs import get_job  # here, to keep start-up light
    from aaiclick.orchestration.queries.job_graphs import get_job_graph  # here, to keep start-up light

    known = await get_job(job_id)
    if known is None:
        raise NotFound(what="job", field="id", value=job_id, hint="See: aaiclick job list")
    if known.total_tasks > TASKS_MAX:
        cause = f"it has {known.total_tasks} tasks, more than {TASKS_MAX}"
        raise Conflict(what=f"The graph of job {job_id}", verb="shown", cause=cause, hint="See: aaiclick job stats")
    return known, await get_job_graph(job_id)


def rows_of(facts: Mapping[str, Any]) -> SimpleNamespace:
    """Return what a server told of a thing as a row: ids are numbers."""
    ids = {name: int(value) for name, value in facts.items() if value is not None and name.endswith("id")}
    return SimpleNamespace(**{**facts, **ids})


def _show_tree(job: Any, found: Rows, everything: bool) -> None:
    from aaiclick.cli.jobs.outlines import outline, tree_lines  # here, to keep start-up light

    show_text(cell(f"{job.name} ({job.id}) {job.status} {job.completed_tasks}/{job.total_tasks}"))
    lines = tree_lines(outline(*found), everything=everything or not is_terminal())  # a pipe gets it whole
    if is_terminal() and not os.environ.get("NO_COLOR"):
        _show_coloured(lines)
        return
    for line in lines:
        show_text(line.branches + "  ".join(filter(None, (cell(line.text), line.status, cell(line.more)))))


def _show_coloured(lines: Iterable[OutlineLine]) -> None:
    # imported only where a person looks at it
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in lines:
        shown = Text(line.branches + cell(line.text))  # as text: a name may look like markup
        if line.status:
            shown.append("  " + line.status, STYLES.get(line.status, ""))
        if line.more:
            shown.append("  " + cell(line.more), "dim")
        console.print(shown, soft_wrap=True)


def _show_diagram(found: Rows, form: str, everything: bool) -> None:
    from aaiclick.cli.jobs.diagrams import Diagram, to_dot, to_mermaid  # here, to keep start-up light
    from aaiclick.cli.jobs.outlines import in_words, outline  # here, to keep start-up light

    diagram = Diagram(outline(*found), everything=everything)
    lines: Iterator[str] = (to_dot if form == "dot" else to_mermaid)(diagram)
    for line in lines:
        show_text(line)
    if diagram.cut:
        say(f"Not shown: {in_words(diagram.cut)} (--all shows everything)")
