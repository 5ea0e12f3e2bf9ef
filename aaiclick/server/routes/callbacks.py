"""Callbacks over HTTP: what others send to a task that waits for it. The token in the path is all that they need."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from starlette.exceptions import HTTPException

from aaiclick.orchestration.access.callbacks import TOKEN_LENGTH, receive_callback
from aaiclick.representations.callbacks import CallbackAnswer
from aaiclick.server.auth.middleware import CALLBACKS
from aaiclick.server.openapi import told
from aaiclick.server.responses import answer

router = APIRouter(prefix=f"/{CALLBACKS.rstrip('/').rpartition('/')[2]}", tags=["callbacks"])

Token = Annotated[str, Path(pattern=f"^[A-Za-z0-9_-]{{{TOKEN_LENGTH}}}$", examples=["x" * TOKEN_LENGTH])]


@router.post("/{token}", response_model=CallbackAnswer, responses=told(400, 404, 409))
async def receive(request: Request, token: Token) -> Response:
    """Hand the body, of any type, to the task that gave this token. It counts once; the same again is accepted."""
    try:
        body = (await request.body()).decode()
    except UnicodeDecodeError:
        raise HTTPException(400, "The body is not UTF-8.") from None
    return answer(request, CallbackAnswer(accepted=True, repeated=not await receive_callback(token, body)))
