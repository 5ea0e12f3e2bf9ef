"""Who asks, what they may do, and writing down what they change."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any

from fastapi import Depends
from fastapi.security import HTTPBearer
from starlette.requests import Request

from aaiclick.errors import NotAllowed
from aaiclick.orchestration.access.audit import Change, audited
from aaiclick.orchestration.models.token import Token
from aaiclick.orchestration.rules.roles import Role
from aaiclick.server.transport.query_strings import check_query

BEARER = HTTPBearer(auto_error=False, description="A token made by `aaiclick token create`.")
"""For the document of the interface: the door has looked at the token before."""


class Actor:
    """Who asks: the token that opened the door."""

    def __init__(self, token: Token) -> None:
        self.token = token

    def changes(self, verb: str, target: str) -> AbstractAsyncContextManager[Change]:
        """What they are about to change is written down first, and its outcome after."""
        return audited(self.token, verb, target)


def needs(role: Role) -> Any:
    """Let in who has this role, or one that includes it."""

    async def check(request: Request, _: Annotated[Any, Depends(BEARER)]) -> Actor:
        token: Token = request.state.token
        if not token.role.may(role):
            cause, hint = f"it needs the role {role}, and the token's is {token.role}", "Ask with another token."
            raise NotAllowed(what=f"{request.method} {request.url.path}", cause=cause, hint=hint)
        check_query(request)
        return Actor(token)

    return Depends(check)


Viewer = Annotated[Actor, needs(Role.VIEWER)]
Operator = Annotated[Actor, needs(Role.OPERATOR)]
Author = Annotated[Actor, needs(Role.AUTHOR)]
Admin = Annotated[Actor, needs(Role.ADMIN)]
