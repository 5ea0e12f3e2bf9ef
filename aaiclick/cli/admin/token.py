"""`aaiclick token`: who may ask the server."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from aaiclick.cli.event_loop import wait_for, with_id
from aaiclick.cli.output import AsJson, say, show_json, show_table, show_text
from aaiclick.wording import counted

COLUMNS = ("id", "name", "role", "created", "expires", "revoked", "last used")
UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}

app = typer.Typer(rich_markup_mode=None)


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Who or what it is for.")],
    role: Annotated[
        str, typer.Option(help="viewer, operator, author or admin; each may do what those before it may.")
    ] = ("viewer"),
    expires: Annotated[
        str | None, typer.Option(help="How long it counts, such as 90d or 12h; by default for ever.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a token. It is shown now, and never again."""
    from aaiclick.orchestration.access.tokens import create_token  # here, to keep start-up light
    from aaiclick.representations.access.tokens import new_token  # here, to keep start-up light

    made = wait_for(create_token(name, role, lives_s=to_seconds(expires)))
    if as_json:
        show_json(new_token(made.token, made.text))
        return
    show_text(made.text)
    say("Keep it: it is not shown again.")


def to_seconds(text: str | None) -> float | None:
    """A length of time as people write it."""
    from aaiclick.errors import InputError  # here, to keep start-up light

    if text is None:
        return None
    form = re.fullmatch("([0-9]{1,9})([smhd])", text)
    if form is None:
        raise InputError(field="--expires", value=text[:50], rule="a number and s, m, h or d", hint="Such as 90d.")
    return float(int(form[1]) * UNITS_S[form[2]])


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List tokens, the newest first; their secrets are not kept."""
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
    """Let a token count no more, from the next request on."""
    from aaiclick.orchestration.access.tokens import revoke_token  # here, to keep start-up light

    async def revoke_it(found: int) -> tuple[int, bool]:
        return found, await revoke_token(found)

    wanted, revoked = with_id("token", token_id, revoke_it)
    if as_json:
        show_json({"id": str(wanted), "revoked": revoked})
    else:
        say(f"Token {wanted} is revoked." if revoked else f"Token {wanted} was revoked already.")
