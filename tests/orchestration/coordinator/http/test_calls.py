"""Calls over lost connections, to servers that are away or busy: made once, or found again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest

from aaiclick import errors
from aaiclick.errors import AaiclickError, CoordinatorUnreachable, ProtocolRefused, SessionOver
from aaiclick.orchestration.coordinator.http import calls as calls_module
from aaiclick.orchestration.coordinator.http.calls import Calls
from aaiclick.orchestration.coordinator.http.connection import Answer, Lost
from aaiclick.orchestration.coordinator.http.protocol import JSON, MSGPACK, OfWorker, Wrong, packed, read, written
from aaiclick.server_address import Address

Answers = Callable[[OfWorker], Awaitable[bytes | None]]
"""What a server does with a call: the bytes of its answer; None to end the connection."""


def ok(value: object, media: str = JSON) -> bytes:
    return head(200, written(value, media), media)


def head(status: int, body: bytes = b"", media: str = JSON, more: str = "") -> bytes:
    return f"HTTP/1.1 {status} X\r\nContent-Type: {media}\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Peer:
    """A server that does as it is told, and notes what it was asked."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = list(answers)
        self.asked: list[OfWorker] = []
        self.heads: list[str] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while True:
            try:
                top = (await reader.readuntil(b"\r\n\r\n")).decode()
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            length = int(top.split("content-length: ")[1].split("\r\n")[0])
            body = await reader.readexactly(length)
            self.heads.append(top)
            self.asked.append(read(body, JSON, OfWorker))
            answer = self.answers.pop(0) if self.answers else ok(True)
            if answer is None:
                break
            writer.write(answer)
        writer.close()


@asynccontextmanager
async def calling(*peers: Peer) -> AsyncIterator[Calls]:
    """Calls to these peers, the first of them first; no pause takes time."""
    async with AsyncExitStack() as stack:
        addresses = []
        for peer in peers:
            server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
            stack.callback(server.close)
            addresses.append(Address.of(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
        calls = quick(addresses)
        stack.callback(calls.close)
        async with asyncio.timeout(30):
            yield calls


class Hurried:
    """A clock on which nobody sleeps."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return 1000.0

    def wall(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def quick(addresses: Sequence[Address]) -> Calls:
    calls = Calls(addresses, lambda: "aai_1_x", media=JSON, clock=Hurried())
    calls._first = 0
    return calls


ASKED = OfWorker(worker=7)


async def test_calls_share_a_connection_and_say_who_asks() -> None:
    peer = Peer()
    async with calling(peer) as calls:
        assert await calls.ask("beat", ASKED, bool)
        assert await calls.ask("beat", ASKED, bool)
    assert peer.connections == 1
    assert peer.heads[0].startswith("POST /api/v1/node/beat HTTP/1.1\r\n")
    for line in ("authorization: Bearer aai_1_x", "Aaiclick-Node: 1", f"accept: {JSON}", "accept-encoding: gzip"):
        assert line in peer.heads[0]


class Recited:
    """A connection without a network: it knows its answers."""

    def __init__(self, *answers: Answer | Lost) -> None:
        self.answers = list(answers)
        self.reusable, self.sent = True, list[tuple[str, str, OfWorker]]()

    async def connect(self, address: Address, secured: object) -> Recited:
        self.reusable = True
        return self

    def is_open(self) -> bool:
        return self.reusable

    async def send(self, method: str, target: str, headers: bytes, body: bytes) -> Answer:
        self.sent.append((method, target, read(body, JSON, OfWorker)))
        found = self.answers.pop(0)
        if isinstance(found, Lost):
            self.close()
            raise found
        return found

    def close(self) -> None:
        self.reusable = False


async def test_calls_are_made_over_whatever_is_opened_for_them() -> None:
    answer = Answer(200, {"content-type": JSON}, b"true")
    wire = Recited(Lost("gone"), answer)
    calls = Calls([Address.of("http://somewhere:1/below")], str, media=JSON, clock=Hurried(), connect=wire.connect)
    assert await calls.ask("beat", ASKED, bool)
    target = "/below/api/v1/node/beat"
    assert [(method, path, asked.again) for method, path, asked in wire.sent] == [
        ("POST", target, False),
        ("POST", target, True),
    ]


async def test_a_call_whose_answer_is_lost_is_repeated_and_says_so() -> None:
    peer = Peer(None, ok(True)[:-2])
    async with calling(peer) as calls:
        peer.answers = [None, ok(True)]
        assert await calls.ask("beat", ASKED, bool)
    assert [asked.again for asked in peer.asked] == [False, True]


async def test_the_next_address_is_asked_and_stays_the_first() -> None:
    first, second = Peer(None), Peer()
    async with calling(first, second) as calls:
        for _ in range(3):
            await calls.ask("beat", ASKED, bool)
    assert [len(first.asked), len(second.asked)] == [1, 3]
    assert second.asked[0].again


async def test_of_several_servers_those_that_are_away_are_passed_over() -> None:
    there = Peer()
    gone = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    nobody = Address.of(f"http://127.0.0.1:{gone.sockets[0].getsockname()[1]}")
    gone.close()
    await gone.wait_closed()
    async with calling(there) as calls:
        both = quick([nobody, *calls.addresses])
        assert await both.ask("beat", ASKED, bool)
        assert not there.asked[0].again  # it was never sent before
        with pytest.raises(CoordinatorUnreachable, match=str(nobody.port)):
            await quick([nobody]).ask("beat", ASKED, bool)
        both.close()


async def test_a_busy_server_is_asked_again_after_the_time_that_it_names() -> None:
    busy = head(503, written(Wrong("so many"), JSON), "application/problem+json", "Retry-After: 2\r\n")
    peer = Peer(busy, head(502, b"<html>", "text/html"))
    async with calling(peer) as calls:
        assert await calls.ask("beat", ASKED, bool)
        assert isinstance(calls.clock, Hurried)
        assert 1 <= calls.clock.slept[0] <= 2
        peer.answers = [busy] * 10
        with pytest.raises(CoordinatorUnreachable, match="503: so many"):
            await calls.ask("beat", ASKED, bool)


async def test_errors_come_over_as_they_were_raised() -> None:
    over = SessionOver(worker_id=7, cause="it was ended", swept=True)
    body = written({"detail": str(over), "error": "SessionOver", "facts": over.facts}, JSON)
    peer = Peer(head(409, body, "application/problem+json"))
    async with calling(peer) as calls:
        with pytest.raises(SessionOver) as caught:
            await calls.ask("claim", ASKED, bool)
    assert str(caught.value) == str(over)
    assert caught.value.swept is True


@pytest.mark.parametrize("name", ["string", "os", "_Facts", "TYPE_CHECKING", "", "Nothing"])
async def test_names_that_are_no_errors_of_ours_are_not_followed(name: str) -> None:
    peer = Peer(head(418, written({"error": name, "detail": "teapot"}, JSON), "application/problem+json"))
    async with calling(peer) as calls:
        with pytest.raises(CoordinatorUnreachable, match="418: teapot"):
            await calls.ask("claim", ASKED, bool)


async def test_another_version_is_refused_with_what_to_install() -> None:
    peer = Peer(head(426, written(Wrong("Install aaiclick 9."), JSON), "application/problem+json"))
    async with calling(peer) as calls:
        with pytest.raises(ProtocolRefused, match=r"version 1 of the protocol.* Install aaiclick 9\."):
            await calls.ask("claim", ASKED, bool)


async def test_what_is_no_server_of_ours_is_told_from_one() -> None:
    peer = Peer(head(200, b"<html>welcome", "text/html"), head(404, b"not here", "text/plain"))
    async with calling(peer) as calls:
        for status in (200, 404):
            with pytest.raises(CoordinatorUnreachable, match=f"answered {status}"):
                await calls.ask("claim", ASKED, bool)


async def test_long_answers_and_long_calls_are_compressed() -> None:
    text = "x" * 10_000
    peer = Peer(head(200, packed(written(text, MSGPACK)), MSGPACK, "Content-Encoding: gzip\r\n"))
    async with calling(peer) as calls:
        assert await calls.ask("claim", ASKED, str) == text


async def test_a_call_that_is_given_up_turns_from_its_server() -> None:
    """It may hang behind a network that drops everything: the next call goes elsewhere."""
    waiting = asyncio.Event()

    class Silent(Peer):
        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            waiting.set()
            await reader.read()
            writer.close()

    there = Peer()
    async with calling(Silent(), there) as calls:
        asking = asyncio.create_task(calls.ask("beat", ASKED, bool))
        await waiting.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await calls.ask("beat", ASKED, bool)
    assert len(there.asked) == 1


def test_every_error_can_be_made_of_its_facts() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, AaiclickError)]
    assert all(isinstance(kind(hint="x"), kind) for kind in kinds)


class Mute(Peer):
    """Takes calls, and answers none: a process that was stopped, or whose packets are lost."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        await reader.read()
        with suppress(ConnectionError):
            await reader.read()
        writer.close()


async def test_an_answer_that_does_not_come_is_not_waited_for_for_ever() -> None:
    mute, there = Mute(), Peer()
    async with calling(mute, there) as calls:
        assert await calls.ask("hints", ASKED, bool, within_s=0.05)
        assert there.asked[0].again, "the first may have been carried out"
        with pytest.raises(CoordinatorUnreachable, match=r"no answer in 0\.05 s"):
            await quick(calls.addresses[:1]).ask("hints", ASKED, bool, within_s=0.05)


async def test_calls_have_a_limit_though_nobody_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls_module, "ANSWER_S_MAX", 0.05)
    async with calling(Mute()) as calls:
        with pytest.raises(CoordinatorUnreachable, match="no answer"):
            await calls.ask("who", ASKED, bool)


async def test_a_server_of_another_version_is_passed_over_as_long_as_one_may_understand() -> None:
    """While servers are brought up to date one after the other, not all understand the same."""
    refusal = head(426, written(Wrong("Install aaiclick 9."), JSON), "application/problem+json")
    old, new = Peer(*[refusal] * 5), Peer(*[ok(True)] * 2, refusal)
    async with calling(old, new) as calls:
        assert await calls.ask("beat", ASKED, bool)
        assert await calls.ask("beat", ASKED, bool)
        assert [len(old.asked), len(new.asked)] == [1, 2]
        with pytest.raises(ProtocolRefused):
            await calls.ask("beat", ASKED, bool)
        assert [len(old.asked), len(new.asked)] == [2, 3]


async def test_one_that_is_away_is_waited_for_though_another_refuses() -> None:
    refusal = head(426, written(Wrong("Install aaiclick 9."), JSON), "application/problem+json")
    gone = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    nobody = Address.of(f"http://127.0.0.1:{gone.sockets[0].getsockname()[1]}")
    gone.close()
    await gone.wait_closed()
    async with calling(Peer(*[refusal] * 9)) as calls:
        both = quick([nobody, *calls.addresses])
        with pytest.raises(CoordinatorUnreachable):
            await both.ask("beat", ASKED, bool)
        both.close()


async def test_the_farewell_of_a_proxy_is_not_taken_for_an_answer() -> None:
    """Some say 408 before they close a connection that nobody used."""
    peer = Peer(ok(True) + head(408, b"<html>", "text/html", "Connection: close\r\n"), b"", ok(False))
    async with calling(peer) as calls:
        assert await calls.ask("beat", ASKED, bool)
        assert await calls.ask("beat", ASKED, bool) is False
