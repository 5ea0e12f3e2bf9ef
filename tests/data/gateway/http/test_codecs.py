"""Compression of bodies."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import lz4.frame
import pytest

from aaiclick.data.gateway.faults import Fault
from aaiclick.data.gateway.http import codecs

PACK: dict[str, Callable[[bytes], bytes]] = {
    "lz4": lz4.frame.compress,
    "zstd": vars(codecs)["zstd"].compress,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
}
UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "lz4": lz4.frame.decompress,
    "zstd": vars(codecs)["zstd"].decompress,
    "gzip": gzip.decompress,
    "deflate": zlib.decompress,
}
TEXT = bytes(range(256)) * 5000


def unpacked(encoding: str, packed: bytes, piece_bytes: int) -> list[bytes]:
    pieces = (packed[at : at + piece_bytes] for at in range(0, len(packed), piece_bytes))
    return list(codecs.decompress(encoding, pieces))


@pytest.mark.parametrize("piece_bytes", [1000, 1 << 20])
@pytest.mark.parametrize("encoding", PACK)
def test_a_packed_body_is_unpacked_however_it_is_cut(encoding: str, piece_bytes: int) -> None:
    assert b"".join(unpacked(encoding, PACK[encoding](TEXT), piece_bytes)) == TEXT


@pytest.mark.parametrize("encoding", PACK)
def test_a_body_may_be_packed_in_several_frames(encoding: str) -> None:
    packed = b"".join(PACK[encoding](part) for part in (b"abc", TEXT, b"", b"xyz"))
    assert b"".join(unpacked(encoding, packed, 777)) == b"abc" + TEXT + b"xyz"


@pytest.mark.parametrize("encoding", PACK)
def test_what_unpacks_to_much_comes_in_pieces(encoding: str) -> None:
    pieces = unpacked(encoding, PACK[encoding](bytes(5 * codecs.PIECE_BYTES)), 1 << 20)
    assert sum(map(len, pieces)) == 5 * codecs.PIECE_BYTES
    assert max(map(len, pieces)) <= codecs.PIECE_BYTES


@pytest.mark.parametrize("encoding", PACK)
def test_a_packed_body_that_breaks_off_is_noticed(encoding: str) -> None:
    with pytest.raises(Fault) as refused:
        unpacked(encoding, PACK[encoding](TEXT)[:-20], 1000)
    assert refused.value.code == 271


@pytest.mark.parametrize("encoding", PACK)
def test_a_body_that_is_not_packed_is_noticed(encoding: str) -> None:
    with pytest.raises(Fault) as refused:
        unpacked(encoding, b"this is plain text, and not at all packed", 1000)
    assert refused.value.code == 271


def test_an_unknown_compression_is_refused() -> None:
    with pytest.raises(Fault) as refused:
        unpacked("rot13", b"abc", 10)
    assert refused.value.code == 89


@pytest.mark.parametrize("encoding", ["", "identity"])
def test_no_compression_changes_nothing(encoding: str) -> None:
    assert unpacked(encoding, b"abc", 2) == [b"ab", b"c"]


@pytest.mark.parametrize("encoding", UNPACK)
def test_an_answer_is_packed(encoding: str) -> None:
    packer = codecs.compressor(encoding)
    packed = packer.add(TEXT) + packer.add(b"abc") + packer.end()
    assert UNPACK[encoding](packed) == TEXT + b"abc"


@pytest.mark.parametrize("encoding", UNPACK)
def test_an_empty_answer_is_packed(encoding: str) -> None:
    assert UNPACK[encoding](codecs.compressor(encoding).end()) == b""


@pytest.mark.parametrize(
    ("accepted", "chosen"),
    [("gzip, zstd;q=0.5, LZ4", "lz4"), ("br,gzip", "gzip"), ("deflate", "deflate"), ("br", ""), ("", "")],
)
def test_the_fastest_of_what_is_accepted_is_chosen(accepted: str, chosen: str) -> None:
    assert codecs.choose(accepted) == chosen
