"""A server that answers a constant, with the settings of ours: what HTTP alone costs. Prints its port."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn

from aaiclick.server.transport.addresses import LOOPBACK_HOST, listen

BODY = b'{"status": "running"}'
HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(BODY)).encode())]


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await send({"type": "http.response.body", "body": BODY})


async def main() -> None:
    listening = listen(LOOPBACK_HOST, 0)
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, lifespan="off", ws="none")
    await uvicorn.Server(config).serve(sockets=[listening])


if __name__ == "__main__":
    asyncio.run(main())
