"""Requests to a server: which are repeated, and which connections are used again."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.client.calls import PAUSE_S_MAX, Answered, Calls
from aaiclick.client.networks import finished
from aaiclick.errors import AaiclickError, ConfigError, ServerBusy, ServerUnreachable
from tests.client.scripted import ScriptedNetwork, answered

BUSY = answered(b'{"type": "urn:aaiclick:problem:TooManyRequests", "detail": "Too many."}', "429 No", "Retry-After: 2")
AWAY = answered(b'{"type": "x", "detail": "Away."}', "503 No")
GOOD = answered(b"{}")
CUT = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"


def ask(network: ScriptedNetwork, method: str = "GET", **how: Any) -> Answered:
    return finished(Calls(network, "http://server:8765/below", "secret").ask(method, "/jobs", **how))


def test_what_is_sent() -> None:
    network = ScriptedNetwork(GOOD)
    assert ask(network, "PUT", query={"limit": 2, "flag": True, "none": None}, body={"a": "ü"}).body == b"{}"
    head, _, body = network.asked[0].partition("\r\n\r\n")
    assert head.splitlines()[0] == "PUT /below/api/v1/jobs?limit=2&flag=true HTTP/1.1"
    assert {"Host: server:8765", "Authorization: Bearer secret", "Content-Type: application/json"} <= {
        *head.splitlines()
    }
    assert body == '{"a": "\\u00fc"}'


@pytest.mark.parametrize("answers", [(None, GOOD), (CUT, GOOD), (AWAY, GOOD), (BUSY, GOOD), (b"", None, AWAY, GOOD)])
def test_what_may_be_repeated_is(answers: tuple[bytes | None, ...]) -> None:
    network = ScriptedNetwork(*answers)
    assert ask(network).status == 200
    assert len(network.slept) == len(answers) - 1


@pytest.mark.parametrize(("answers", "error"), [((CUT,), ServerUnreachable), ((AWAY,), ServerBusy)])
def test_what_may_not_is_not(answers: tuple[bytes, ...], error: type[AaiclickError]) -> None:
    network = ScriptedNetwork(*answers, GOOD)
    with pytest.raises(error):
        ask(network, "POST")
    assert network.slept == []


@pytest.mark.parametrize("refused", [None, BUSY])
def test_what_was_not_done_is_asked_again_whatever_it_is(refused: bytes | None) -> None:
    assert ask(ScriptedNetwork(refused, GOOD), "POST").status == 200


def test_it_ends_after_some_attempts() -> None:
    network = ScriptedNetwork(*[AWAY] * 9)
    with pytest.raises(ServerBusy, match="Away"):
        ask(network)
    assert len(network.asked) == 4
    assert all(0 < pause <= PAUSE_S_MAX for pause in network.slept)


def test_the_server_says_how_long_to_wait() -> None:
    network = ScriptedNetwork(BUSY, GOOD)
    ask(network)
    assert network.slept == [2]


def test_connections_are_used_again_but_not_for_what_must_not_be_repeated() -> None:
    network = ScriptedNetwork(GOOD + GOOD + GOOD, GOOD)
    calls = Calls(network, "http://server", "x")
    for _ in range(2):
        finished(calls.ask("GET", "/jobs"))
    assert len(network.wires) == 1
    finished(calls.ask("POST", "/jobs"))
    assert len(network.wires) == 2
    finished(calls.ask("GET", "/jobs"))
    assert len(network.wires) == 2
    calls.close()
    assert all(wire.closed for wire in network.wires)


@pytest.mark.parametrize("token", ["a b", "a\nb", "ü"])
def test_what_is_no_token(token: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Calls(ScriptedNetwork(), "http://server", token)
    assert token not in str(refused.value)
