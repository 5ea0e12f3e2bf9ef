"""`aaiclick resource`: capacities of machines and of the whole installation, and who holds what of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from aaiclick.cli.afar import afar
from aaiclick.cli.event_loop import wait_for
from aaiclick.cli.jobs.watching import Watch, watch
from aaiclick.cli.output import AsJson, printable, say, show_json, show_table
from aaiclick.wording import counted

if TYPE_CHECKING:
    from aaiclick.representations.resources import ResourceAnswer, ResourcePage, ResourceRemoved

COLUMNS = ("name", "node", "slot", "size", "free", "holders")
SHOWN_MAX = 5

app = typer.Typer(rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the resource, such as licence:abaqus.")]


@app.command("list")
def list_(
    name: Annotated[str | None, typer.Option(help="Only this resource.")] = None,
    node: Annotated[str | None, typer.Option(help="Only what this machine has.")] = None,
    limit: Annotated[int | None, typer.Option(help="How many at most.")] = None,
    after: Annotated[str | None, typer.Option(help="The `next` of the page before.")] = None,
    watched: Watch = False,
    as_json: AsJson = False,
) -> None:
    """List capacities with what is free and who holds the rest; those of the whole installation first."""

    async def read() -> ResourcePage:
        if (api := afar()) is not None:
            return await api.list_resources(name=name, node=node, after=after, limit=limit)
        from aaiclick.orchestration.resources import list_resources  # here, to keep start-up light
        from aaiclick.representations.resources import resource_page  # here, to keep start-up light

        return resource_page(await list_resources(name, limit, node=node, after=after), limit)

    if watched:
        watch(read, lambda found: _show(found, as_json), as_json=as_json)
    else:
        _show(wait_for(read()), as_json)


def _show(found: ResourcePage, as_json: bool) -> None:
    if as_json:
        show_json(found)
        return
    units = found["resources"]
    show_table(COLUMNS, [[*_facts(unit), _holders(unit)] for unit in units])
    say(counted(len(units), "capacity", "capacities"))


def _facts(unit: ResourceAnswer) -> list[object]:
    return [unit["name"], unit["node"] or "(all)", unit["slot"], unit["size"], unit["free"]]


def _holders(unit: ResourceAnswer) -> str:
    """Return the tasks that hold a part; a task whose body is being stopped is marked."""
    words = [
        f"{holder['task_id']} {holder['name']}: {holder['amount']}{' (ending)' if holder['is_ending'] else ''}"
        for holder in unit["holders"][:SHOWN_MAX]
    ]
    left = len(unit["holders"]) + unit["more"] - len(words)
    return ", ".join([*words, *([f"and {left} more"] if left else [])])


@app.command("set")
def set_(
    name: Name,
    amount: Annotated[float, typer.Argument(help="How much there is for all machines together.")],
    as_json: AsJson = False,
) -> None:
    """Set a capacity of the whole installation: licences, seats, connections. It counts from the next claim on."""
    unit = wait_for(_set(name, amount))
    if as_json:
        show_json(unit)
    else:
        say(f"There is {unit['size']} of {printable(unit['name'])}, of which {unit['free']} is free.")


async def _set(name: str, amount: float) -> ResourceAnswer:
    if (api := afar()) is not None:
        return await api.set_resource(name, amount)
    from aaiclick.orchestration.resources import set_resource  # here, to keep start-up light
    from aaiclick.representations.resources import resource_answer  # here, to keep start-up light

    return resource_answer(await set_resource(name, amount))


@app.command()
def remove(name: Name, as_json: AsJson = False) -> None:
    """Forget a capacity of the whole installation. What runs hold of it stays theirs; other tasks wait for it."""
    gone = wait_for(_remove(name))
    if as_json:
        show_json(gone)
    else:
        say(f"{printable(gone['removed'])} is removed.")


async def _remove(name: str) -> ResourceRemoved:
    if (api := afar()) is not None:
        return await api.remove_resource(name)
    from aaiclick.orchestration.resources import remove_resource  # here, to keep start-up light

    await remove_resource(name)
    return {"removed": name}
