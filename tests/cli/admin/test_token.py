"""`aaiclick token`"""

from __future__ import annotations

import asyncio

import pytest

from aaiclick.orchestration.access.tokens import authenticate, list_tokens
from tests.cli.conftest import Cli


def test_a_token_is_shown_once_and_alone_on_stdout(cli: Cli) -> None:
    made = cli("token", "create", "dashboard", "--role", "operator")
    assert made.code == 0
    assert made.err == "Keep it: it is not shown again.\n"
    found = asyncio.run(authenticate(made.out.strip()))
    assert (found.name, str(found.role), found.expires_at) == ("dashboard", "operator", None)
    assert made.out.strip() not in cli("token", "list").out


def test_as_json(cli: Cli) -> None:
    made = cli("token", "create", "x", "--expires", "90d", "--json").data
    assert asyncio.run(authenticate(made["token"])).id == int(made["id"])
    assert made["expires_at"] > made["created_at"]
    (listed,) = cli("token", "list", "--json").data["tokens"]
    assert listed["role"] == "viewer"
    assert listed["last_used_at"] is not None
    assert "token" not in listed


def test_list_and_revoke(cli: Cli) -> None:
    assert cli("token", "list").err == "no tokens\n"
    made = cli("token", "create", "x", "--json").data
    assert cli("token", "revoke", made["id"]).err == f"Token {made['id']} is revoked.\n"
    assert cli("token", "revoke", made["id"], "--json").data == {"id": made["id"], "revoked": False}
    (token,) = asyncio.run(list_tokens())
    assert token.revoked_at is not None
    assert cli("token", "list").err == "1 token\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("create", "x", "--role", "king"), 2),
        (("create", ""), 2),
        (("create", "x", "--expires", "soon"), 2),
        (("create", "x", "--expires", "0d"), 2),
        (("create", "x", "--expires", "999999999d"), 2),
        (("revoke", "12345"), 3),
        (("revoke", "0x10"), 2),
    ],
)
def test_what_is_refused(cli: Cli, arguments: tuple[str, ...], code: int) -> None:
    answer = cli("token", *arguments)
    assert (answer.code, answer.out) == (code, "")
    assert len(answer.err.splitlines()) == 1
