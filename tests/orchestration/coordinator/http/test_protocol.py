"""What travels between a worker and a server."""

from __future__ import annotations

import zlib

import pytest

from aaiclick.errors import InputError
from aaiclick.orchestration.coordinator.http import protocol
from aaiclick.orchestration.coordinator.http.protocol import (
    JSON,
    MSGPACK,
    Beat,
    Claimed,
    ClaimTasks,
    Given,
    Reports,
    packed,
    read,
    unpacked,
    written,
)
from aaiclick.orchestration.models import Done, Failure, Held

LARGE = 2**62 + 1
SAID = (
    Beat(worker=LARGE, known_call=3, held=[Held(LARGE, 2, True, "log")], completed=1),
    ClaimTasks(worker=LARGE, limit=5, lanes=(0, 7), call=9, wait_s=2.5, again=True),
    Reports(worker=LARGE, done=[Done(1, 2, '{"x":NaN}', made=("t",))], failed=[Failure(3, 4, "no", crashed=True)]),
    Claimed(given=[Given({LARGE: None, 2: "x"}, {3: [4]}, {5: 6})], hints=["ready"]),
)


@pytest.mark.parametrize("media", [JSON, MSGPACK])
@pytest.mark.parametrize("said", SAID, ids=lambda said: type(said).__name__)
def test_what_is_written_is_read_as_it_was(said: object, media: str) -> None:
    assert read(written(said, media), media, type(said)) == said


def test_a_claim_in_json_can_be_read_by_people() -> None:
    assert written(ClaimTasks(worker=7, limit=2), JSON) == b'{"worker":7,"limit":2}'


@pytest.mark.parametrize("body", [b"", b"{", b'{"worker":"seven"}', b"[]", b'{"limit":1}', b"\xff\xfe"])
@pytest.mark.parametrize("media", [JSON, MSGPACK])
def test_what_is_no_call_is_refused_with_its_fault(body: bytes, media: str) -> None:
    with pytest.raises(InputError):
        read(body, media, ClaimTasks)


def test_bodies_are_compressed_and_come_back() -> None:
    body = b"the same again and again " * 1000
    assert len(packed(body)) < len(body) / 20
    assert unpacked(packed(body)) == body


def test_a_small_body_that_grows_beyond_all_bounds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "UNPACKED_MAX", 10_000)
    with pytest.raises(InputError, match="more than 10000 bytes"):
        unpacked(packed(bytes(10_001)))


@pytest.mark.parametrize("body", [b"", b"no gzip", packed(b"cut off" * 100)[:20], zlib.compress(b"another form")])
def test_what_is_no_whole_gzip_is_refused(body: bytes) -> None:
    with pytest.raises(InputError):
        unpacked(body)


def test_a_server_understands_the_version_before_its_own() -> None:
    assert [list(protocol.understood(version)) for version in (1, 2, 7)] == [[1], [1, 2], [6, 7]]
    assert protocol.understood(protocol.VERSION) == protocol.VERSIONS


@pytest.mark.parametrize("media", [JSON, MSGPACK])
def test_what_a_newer_one_adds_is_passed_over(media: str) -> None:
    """Within a version, fields may be added that others need not know."""
    newer = written({"alive": True, "drain": False, "since_then": [1]}, media)
    assert read(newer, media, protocol.Ordered) == protocol.Ordered(alive=True)
