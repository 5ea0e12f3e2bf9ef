"""`aaiclick token`: who may ask the server."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from aaiclick.cli.event_loop import wait_for, with_id
from aaiclick.cli.output import AsJson, say, show_json, show_table, show_text
from aaiclick.wording import counted

COLUMNS = ("id", "name", "role", "created", "expires", "revoked", "last used", "node", "pool", "uses left")
UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}

app = typer.Typer(rich_markup_mode=None)


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="The name of the user or program that the token is for.")],
    role: Annotated[
        str,
        typer.Option(help="viewer, operator, author, admin: each includes those before it; or join, worker, replica."),
    ] = ("viewer"),
    expires: Annotated[
        str | None,
        typer.Option(help="How long it is valid, such as 90d or 12h; by default without end, to join 1h."),
    ] = None,
    uses: Annotated[int | None, typer.Option(help="For the role join: how many nodes may join; by default 1.")] = None,
    pool: Annotated[str | None, typer.Option(help="For the roles join and worker: the pool of its nodes.")] = None,
    node: Annotated[
        str | None,
        typer.Option(help="For the role worker: the node that may use it; by default the token's name."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a token. It is shown only once."""
    from aaiclick.orchestration.access.tokens import create_token  # here, to keep start-up light
    from aaiclick.representations.access.tokens import new_token  # here, to keep start-up light

    made = wait_for(create_token(name, role, lives_s=to_seconds(expires), uses=uses, pool=pool, node=node))
    if as_json:
        show_json(new_token(made.token, made.text))
        return
    show_text(made.text)
    say("Keep it: it is not shown again.")


def to_seconds(text: str | None) -> float | None:
    """Return a duration such as 90d or 12h in seconds."""
    from aaiclick.errors import InputError  # here, to keep start-up light

    if text is None:
        return None
    form = re.fullmatch("([0-9]{1,9})([smhd])", text)
    if form is None:
        raise InputError(field="--expires", value=text[:50], rule="a number and s, m, h or d", hint="Such as 90d.")
    return float(int(form[1]) * UNITS_S[form[2]])


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List tokens, newest first; their secrets are not stored."""
    from aaiclick.orchestration.access.tokens import list_tokens  # here, to keep start-up light
    from aaiclick.representations.access.tokens import token_list  # here, to keep start-up light

    found = token_list(wait_for(list_tokens()))
    if as_json:
        show_json(found)
        return
    show_table(COLUMNS, [tuple(token.values()) for token in found["tokens"]])
    say(counted(len(found["tokens"]), "token"))


@app.command()
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The token's id, or enough of its last digits.")],
    as_json: AsJson = False,
) -> None:
    """Revoke a token: it is refused from the next request on."""
    from aaiclick.orchestration.access.tokens import revoke_token  # here, to keep start-up light

    async def revoke_it(found: int) -> tuple[int, bool]:
        return found, await revoke_token(found)

    wanted, revoked = with_id("token", token_id, revoke_it)
    if as_json:
        show_json({"id": str(wanted), "revoked": revoked})
    else:
        say(f"Token {wanted} is revoked." if revoked else f"Token {wanted} was revoked already.")
