"""`aaiclick setup`: what the local mode needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from aaiclick.cli.event_loop import wait_for
from aaiclick.cli.output import AsJson, say, show_facts, show_json


def setup(
    token: Annotated[
        str | None, typer.Option(metavar="NAME", help="Also create an admin token of this name for the server.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create the local root, the database and its schema, where they are missing.

    An existing database is checked and not changed.
    """
    facts = wait_for(set_up())
    if token is not None:
        facts["token_file"] = str(wait_for(_new_token(token)))
    if as_json:
        show_json(facts)
        return
    show_facts(facts | {"made": ", ".join(facts["made"]) or "nothing, everything existed"})
    say("aaiclick is ready." if token is None else "aaiclick is ready. The token is only in that file.")


async def _new_token(name: str) -> Path:
    from aaiclick.cli.admin.token_files import token_in_file  # here, to keep start-up light

    return await token_in_file(name)


async def set_up() -> dict[str, Any]:
    """Create what is missing, check what exists, and return the facts."""
    from aaiclick.backend import ensure_root, get_db_url, get_root  # here, to keep start-up light
    from aaiclick.config import mask_url  # here, to keep start-up light
    from aaiclick.orchestration.store import schema  # here, to keep start-up light

    url = get_db_url()
    made = [] if get_root().exists() else ["root"]
    ensure_root()
    if await schema.ensure_local(url):
        made.append("database")
    await schema.check(url)
    return {"root": str(get_root()), "database": mask_url(url), "schema": schema.HEAD, "made": made}
