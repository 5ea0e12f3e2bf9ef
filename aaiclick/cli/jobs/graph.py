"""`aaiclick job graph`: the tasks and groups of a job, and who waits for whom."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from aaiclick.cli.event_loop import with_id
from aaiclick.cli.jobs.job import JobId
from aaiclick.cli.output import AsJson, cell, is_terminal, say, show_json, show_text
from aaiclick.errors import Conflict, InputError, NotFound

if TYPE_CHECKING:
    from aaiclick.cli.jobs.outlines import OutlineLine
    from aaiclick.orchestration.models import Job
    from aaiclick.orchestration.store.reading.job_graphs import JobGraph

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
    everything: Annotated[bool, typer.Option("--all", help="Fold and cut nothing, however large it is.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the graph of a job. Of large ones, a terminal or a drawing gets folded groups and a count of the rest."""
    if form not in ("tree", "dot", "mermaid"):
        raise InputError(field="--format", value=form[:50], rule="one of: tree, dot, mermaid", hint="")
    from aaiclick.representations.graphs import graph_answer  # here, to keep start-up light

    job, found = with_id("job", job_id, _read)
    if as_json:
        show_json(graph_answer(found))
    elif form == "tree":
        _show_tree(job, found, everything)
    else:
        _show_diagram(found, form, everything)


async def _read(job_id: int) -> tuple[Job, JobGraph]:
    from aaiclick.orchestration.jobs import get_job  # here, to keep start-up light
    from aaiclick.orchestration.queries.job_graphs import get_job_graph  # here, to keep start-up light

    job = await get_job(job_id)
    if job is None:
        raise NotFound(what="job", field="id", value=job_id, hint="See: aaiclick job list")
    if job.total_tasks > TASKS_MAX:
        cause = f"it has {job.total_tasks} tasks, more than {TASKS_MAX}"
        raise Conflict(what=f"The graph of job {job_id}", verb="shown", cause=cause, hint="See: aaiclick job stats")
    return job, await get_job_graph(job_id)


def _show_tree(job: Job, found: JobGraph, everything: bool) -> None:
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


def _show_diagram(found: JobGraph, form: str, everything: bool) -> None:
    from aaiclick.cli.jobs.diagrams import Diagram, to_dot, to_mermaid  # here, to keep start-up light
    from aaiclick.cli.jobs.outlines import in_words, outline  # here, to keep start-up light

    diagram = Diagram(outline(*found), everything=everything)
    lines: Iterator[str] = (to_dot if form == "dot" else to_mermaid)(diagram)
    for line in lines:
        show_text(line)
    if diagram.cut:
        say(f"Not shown: {in_words(diagram.cut)} (--all shows everything)")
