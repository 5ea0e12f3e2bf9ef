"""TLS and mTLS with real certificates: who has none of the authority gets no word in."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from aaiclick.config import Settings, settings
from aaiclick.errors import ConfigError, CoordinatorUnreachable, InputError
from aaiclick.orchestration.access.tokens import create_token
from aaiclick.orchestration.coordinator.http import opening
from aaiclick.orchestration.coordinator.http.opening import opened_coordinator
from aaiclick.server.serving import serve
from aaiclick.server.transport.addresses import listen
from aaiclick.server.transport.tls import Tls, chosen_tls
from tests.support.certificates import Authority, authority


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = authority(tmp_path_factory.mktemp("ca"))
    for name in ("server", "worker"):
        made.issue(name)
    return made


@asynccontextmanager
async def serving(tls: Tls) -> AsyncIterator[str]:
    told: asyncio.Queue[str] = asyncio.Queue()
    running = asyncio.create_task(
        serve("nowhere.invalid", 1, told=told.put_nowait, given=listen("127.0.0.1", 0), tls=tls)
    )
    try:
        async with asyncio.timeout(60):
            yield await told.get()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def chosen(url: str, token: str, tmp_path: Path, cert: Path | None) -> Settings:
    return replace(settings(), coordinator_urls=(url,), api_token=token, api_cert=cert, local_root=tmp_path)


async def test_a_worker_with_a_certificate_is_let_in_and_one_without_is_not(
    ca: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(ca.cert))
    stranger = authority(tmp_path / "others").issue("worker")
    token = (await create_token("w", "worker")).text
    opening._credentials.clear()
    async with serving(Tls(ca.directory / "server.pem", None, ca.cert)) as url:
        assert url.startswith("https://127.0.0.1:")
        worker = await opened_coordinator(chosen(url, token, tmp_path, ca.directory / "worker.pem"))
        assert await worker.slots() == 0
        worker.close()
        for cert in (None, stranger):
            with pytest.raises(CoordinatorUnreachable):
                await opened_coordinator(chosen(url, token, tmp_path, cert))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "others" / "ca.crt"))
        with pytest.raises(CoordinatorUnreachable, match=r"(?i)certificate"):
            await opened_coordinator(chosen(url, token, tmp_path, ca.directory / "worker.pem"))


async def test_without_an_authority_of_callers_everybody_may_ask(ca: Authority) -> None:
    trusting = ssl.create_default_context(cafile=str(ca.cert))
    both = Tls(ca.directory / "server.crt", ca.directory / "server.key")
    async with serving(both) as url, httpx.AsyncClient(verify=trusting) as client:
        assert (await client.get(f"{url}/readyz")).status_code == 200
        refused = await client.post(f"{url}/api/v1/node/claim", content=bytes(100_000))
        assert refused.status_code == 426


def test_files_that_cannot_be_used_are_named(ca: Authority, tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("nothing")
    for tls, field in (
        (Tls(tmp_path / "absent"), "--tls-cert"),
        (Tls(tmp_path / "no.pem"), "--tls-cert"),
        (Tls(ca.directory / "server.pem", None, tmp_path / "no.pem"), "--tls-client-ca"),
    ):
        with pytest.raises(InputError, match=field):
            tls.options()
    with pytest.raises(InputError, match="the others need it"):
        chosen_tls(None, None, ca.cert)
    assert chosen_tls(None, None, None) is None


async def test_a_certificate_of_a_worker_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="AAICLICK_API_CERT"):
        await opened_coordinator(chosen("https://127.0.0.1:1", "t", tmp_path, tmp_path / "absent"))
