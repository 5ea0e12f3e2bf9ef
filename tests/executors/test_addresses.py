"""Which addresses may be called: judged by the address that a name is found at, not by the name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from aaiclick.config import reset_settings
from aaiclick.errors import InputError, NotAllowed
from aaiclick.executors.addresses import find_place, read_url
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import arguments_from_outside

PUBLIC = ("93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822")
INNER = (
    *("127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "100.64.0.1", "::1", "fd00::1", "::ffff:10.0.0.1"),
    *("2002:0a00:0001::1", "64:ff9b::a00:1", "192.0.2.1", "198.18.0.1", "240.0.0.1"),
)
NEVER = ("169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "0.0.0.0", "::", "224.0.0.1", "ff02::1")


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, list[str]]]:
    """Names are found where the test says, and addresses where they are."""
    known: dict[str, list[str]] = {}

    async def getaddrinfo(self: object, host: str, port: int, **_: object) -> list[Any]:
        return [(None, None, None, "", (ip, port)) for ip in known.get(host, [host])]

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", getaddrinfo)
    yield known
    monkeypatch.undo()
    reset_settings()


def url(ip: str) -> str:
    return f"http://[{ip}]/" if ":" in ip else f"http://{ip}/"


async def test_from_outside_only_public_ones() -> None:
    with arguments_from_outside():
        for ip in PUBLIC:
            assert (await find_place(url(ip))).ips == [ip]
        for ip in (*INNER, *NEVER):
            with pytest.raises(NotAllowed, match="AAICLICK_REST_ALLOW"):
                await find_place(url(ip))


async def test_else_all_but_those_that_are_no_services() -> None:
    for ip in (*PUBLIC, *INNER):
        assert (await find_place(url(ip))).ips == [ip]
    for ip in NEVER:
        with pytest.raises(NotAllowed):
            await find_place(url(ip))


async def test_a_name_is_judged_by_all_that_it_means(names: dict[str, list[str]]) -> None:
    names["example.org"] = ["93.184.216.34", "10.0.0.1"]
    with arguments_from_outside(), pytest.raises(NotAllowed, match=r"example.org \(10\.0\.0\.1\)"):
        await find_place("https://example.org/")


async def test_what_is_allowed_may_be_called(names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_REST_ALLOW", "10.0.0.0/8, Inner.example, 169.254.169.254, fd00::/8")
    reset_settings()
    names["inner.example"] = ["192.168.0.9"]
    with arguments_from_outside():
        for each in ("10.9.9.9", "169.254.169.254", "fd00::5", "::ffff:10.0.0.1", "INNER.example"):
            await find_place(url(each))
        with pytest.raises(NotAllowed):
            await find_place(url("192.168.0.9"))


async def test_the_parts_of_a_place() -> None:
    place = await find_place("https://93.184.216.34:8443/größe?a=b%20c#x")
    assert (place.host, place.port, place.target) == ("93.184.216.34", 8443, "/gr%C3%B6%C3%9Fe?a=b%20c")
    assert place.host_header == "93.184.216.34:8443"
    assert (await find_place("http://[2606:2800:220:1::1]")).host_header == "[2606:2800:220:1::1]"


@pytest.mark.parametrize(
    "given",
    [
        *("ftp://x/", "file:///etc/passwd", "http://", "//x", "x", "", "http://x y/", "http://x/\r\nHost: y", None),
        *("http://user:password@x/", "http://x:99999/", "http://[::1/"),
    ],
)
def test_what_is_no_address_is_refused(given: object) -> None:
    with pytest.raises(InputError) as refused:
        read_url(given)
    assert "password" not in str(refused.value.value)
