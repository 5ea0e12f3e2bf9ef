"""The actor of a request, the role that a route needs, and the audit of what the actor changes."""

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
"""Only for the OpenAPI document: the middleware has already checked the token."""


class Actor:
    """The sender of a request: the token it was authenticated with."""

    def __init__(self, token: Token) -> None:
        self.token = token

    def changes(self, verb: str, target: str) -> AbstractAsyncContextManager[Change]:
        """Return a context manager that writes the change to the audit before the block, and its outcome after it."""
        return audited(self.token, verb, target)


def needs(role: Role) -> Any:
    """Return a FastAPI dependency that raises NotAllowed unless the token's role includes this one.

    It also checks the query string, and returns the `Actor`.
    """

    async def check(request: Request, _: Annotated[Any, Depends(BEARER)]) -> Actor:
        token: Token = request.state.token
        if not token.role.may(role):
            cause, hint = f"it needs the role {role}, and the token's is {token.role}", "Use a token with this role."
            raise NotAllowed(what=f"{request.method} {request.url.path}", cause=cause, hint=hint)
        check_query(request)
        return Actor(token)

    return Depends(check)


Viewer = Annotated[Actor, needs(Role.VIEWER)]
Operator = Annotated[Actor, needs(Role.OPERATOR)]
Author = Annotated[Actor, needs(Role.AUTHOR)]
Admin = Annotated[Actor, needs(Role.ADMIN)]
