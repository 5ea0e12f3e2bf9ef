"""Positions in the feed of events: `min_seq` asks for an answer with at least so many, a header says which it has."""

from __future__ import annotations

import logging
from urllib.parse import parse_qsl, urlencode

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aaiclick.backoff import one_line
from aaiclick.errors import InputError, NotYetHere
from aaiclick.orchestration.queries.event_feed import newest_event
from aaiclick.orchestration.rules.validation import shorten

MIN_SEQ = "min_seq"
SEQ_HEADER = b"aaiclick-as-of-seq"
"""Up to which event an answer shows everything."""

API = "/api/v1/"

log = logging.getLogger("aaiclick.server")


class CoordinatorDoor:
    """At a coordinator: changes are answered with the newest event, which a replica can be asked to have."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(API):
            await self.app(scope, receive, send)
            return
        if scope["method"] == "GET":
            scope, seq = without_min_seq(scope)
            if seq is not None and seq > (newest := await newest_event()):
                hint = "It is the id of an event of another database, or of before this one was restored."
                raise NotYetHere(min_seq=seq, as_of_seq=newest, lag_ms=0, hint=hint)
            await self.app(scope, receive, send)
            return

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start" and 200 <= message["status"] < 300:
                try:
                    seq = str(await newest_event()).encode()
                    message["headers"] = [*message["headers"], (SEQ_HEADER, seq)]
                except Exception as error:  # the change was made: its answer must not be lost
                    log.warning("the newest event is not known: %s", one_line(error))
            await send(message)

        await self.app(scope, receive, tell)


def without_min_seq(scope: Scope) -> tuple[Scope, int | None]:
    """Return a request without the parameter `min_seq`, which no route knows, and its value; raise InputError."""
    if MIN_SEQ.encode() not in scope["query_string"]:
        return scope, None
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    given = [value for name, value in pairs if name == MIN_SEQ]
    if not given:
        return scope, None
    text = given[0]
    if len(given) > 1 or not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) < 2**63):
        raise InputError(field=MIN_SEQ, value=shorten(text), rule="it must be the id of one event", hint="")
    rest = [(name, value) for name, value in pairs if name != MIN_SEQ]
    return {**scope, "query_string": urlencode(rest).encode("latin-1")}, int(text)
