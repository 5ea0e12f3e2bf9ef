"""`aaiclick node`: the machines that run tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from aaiclick.cli.afar import afar
from aaiclick.cli.event_loop import wait_for
from aaiclick.cli.jobs.watching import Watch, watch
from aaiclick.cli.output import AsJson, printable, say, show_facts, show_json, show_table
from aaiclick.errors import NotFound
from aaiclick.wording import counted

if TYPE_CHECKING:
    from aaiclick.representations.nodes import NodeAnswer, NodePage, NodeRemoved

COLUMNS = ("name", "status", "state", "pool", "workers", "slots", "running", "labels", "last heartbeat")
FIELDS = ("name", "status", "state", "pool", "workers", "slots", "running")

Change = Literal["cordon", "uncordon", "drain"]

app = typer.Typer(rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The node's name, as `aaiclick node list` shows it.")]


@app.command("list")
def list_(
    state: Annotated[str | None, typer.Option(help="Only nodes of this state: open, cordoned or draining.")] = None,
    status: Annotated[str | None, typer.Option(help="Only nodes of this status: healthy, stale or dead.")] = None,
    pool: Annotated[str | None, typer.Option(help="Only nodes of this pool.")] = None,
    limit: Annotated[int | None, typer.Option(help="How many at most.")] = None,
    after: Annotated[str | None, typer.Option(help="The last name of the page before.")] = None,
    watched: Watch = False,
    as_json: AsJson = False,
) -> None:
    """List the machines that run tasks, in the order of their names, also dead ones."""

    async def read() -> NodePage:
        if (api := afar()) is not None:
            return await api.list_nodes(state=state, status=status, pool=pool, after=after, limit=limit)
        from aaiclick.orchestration.nodes import list_nodes  # here, to keep start-up light
        from aaiclick.representations.nodes import node_page  # here, to keep start-up light

        return node_page(await list_nodes(state, limit, status=status, pool=pool, after=after), limit)

    if watched:
        watch(read, lambda found: _show(found, as_json), as_json=as_json)
    else:
        _show(wait_for(read()), as_json)


def _show(found: NodePage, as_json: bool) -> None:
    if as_json:
        show_json(found)
        return
    nodes: list[Any] = [*found["nodes"]]
    rows = [
        [*(node[field] for field in FIELDS), ", ".join(map(str, _labels(node))), node["last_heartbeat"]]
        for node in nodes
    ]
    show_table(COLUMNS, rows)
    say(counted(len(nodes), "node"))


def _labels(node: Any) -> list[Any]:
    labels = node["capabilities"].get("labels") or []
    return labels if isinstance(labels, list) else [labels]


@app.command()
def get(name: Name, as_json: AsJson = False) -> None:
    """Show a node: what it has, and what its workers run."""
    _print(wait_for(_get(name)), as_json)


async def _get(name: str) -> NodeAnswer:
    if (api := afar()) is not None:
        return await api.get_node(name)
    from aaiclick.orchestration.nodes import get_node  # here, to keep start-up light
    from aaiclick.representations.nodes import node_answer  # here, to keep start-up light

    found = await get_node(name)
    if found is None:
        raise NotFound(what="node", field="name", value=name, hint="See: aaiclick node list")
    return node_answer(found)


@app.command()
def cordon(name: Name, as_json: AsJson = False) -> None:
    """Let the workers of a node claim no more tasks; what they run goes on, and they stay."""
    _change("cordon", name, "is closed for new tasks", as_json)


@app.command()
def uncordon(name: Name, as_json: AsJson = False) -> None:
    """Let the workers of a node claim tasks again."""
    _change("uncordon", name, "is open", as_json)


@app.command()
def drain(name: Name, as_json: AsJson = False) -> None:
    """Ask the workers of a node to claim no more tasks, to finish what they run, and to leave."""
    _change("drain", name, "drains: its workers are asked to finish and to leave", as_json)


@app.command()
def remove(
    name: Name,
    force: Annotated[
        bool,
        typer.Option("--force", help="Also if its workers are alive: only for a machine that is known to be gone."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Forget a node that is gone; what its workers still held is given to others at once."""
    gone = wait_for(_remove(name, force))
    if as_json:
        show_json(gone)
    else:
        ended, freed = counted(gone["sessions"], "session"), counted(gone["freed"], "run")
        say(f"Node {printable(name)} is removed: {ended} ended, {freed} given to others.")


async def _remove(name: str, force: bool) -> NodeRemoved:
    if (api := afar()) is not None:
        return await api.remove_node(name, force=force)
    from aaiclick.orchestration.nodes import remove_node  # here, to keep start-up light
    from aaiclick.representations.nodes import node_removed  # here, to keep start-up light

    return node_removed(name, await remove_node(name, force=force))


def _change(verb: Change, name: str, said: str, as_json: bool) -> None:
    node = wait_for(_changed(verb, name))
    if as_json:
        show_json(node)
    else:
        say(f"Node {printable(name)} {said}.")


async def _changed(verb: Change, name: str) -> NodeAnswer:
    if (api := afar()) is not None:
        asked = {"cordon": api.cordon_node, "uncordon": api.uncordon_node, "drain": api.drain_node}
        return await asked[verb](name)
    from aaiclick.orchestration import nodes  # here, to keep start-up light
    from aaiclick.representations.nodes import node_answer  # here, to keep start-up light

    here = {"cordon": nodes.cordon_node, "uncordon": nodes.uncordon_node, "drain": nodes.drain_node}
    return node_answer(await here[verb](name))


def _print(node: NodeAnswer, as_json: bool) -> None:
    if as_json:
        show_json(node)
    else:
        show_facts(node)
